// The layers of a model file through a NetworkBuilder.
#pragma once

#include <string>
#include <vector>

#include "thimble/model/file/expand_model.h"
#include "thimble/model/network_builder.h"

namespace thimble {

// Appends the layers and returns the output of the last, which must be (B, classes). Whatever goes
// wrong sticks in `net`, with the place of the layer in the file `path`: shapes that do not go
// together, and sizes whose sums over the network would be beyond any machine.
ValueId BuildModel(NetworkBuilder& net, ValueId images, const std::vector<ModelLayer>& layers,
                   int64_t classes, const std::string& path);

}  // namespace thimble
