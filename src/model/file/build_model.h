// Builds the layers of a model file with a NetworkBuilder.
#pragma once

#include <string>
#include <vector>

#include "thimble/model/file/expand_model.h"
#include "thimble/model/network_builder.h"

namespace thimble {

// Appends the layers and returns the output of the last, which must be (B, classes). `net` keeps
// the first error, with the layer's place in the file `path`: shapes that do not match, or sizes
// whose sums over the network exceed any machine.
ValueId BuildModel(NetworkBuilder& net, ValueId images, const std::vector<ModelLayer>& layers,
                   int64_t classes, const std::string& path);

}  // namespace thimble
