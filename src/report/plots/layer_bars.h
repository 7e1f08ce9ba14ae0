// The bytes held at the peak, by layer.
#pragma once

#include <vector>

#include "thimble/plan/program_record.h"
#include "thimble/report/plots/stacked_bars.h"

namespace thimble {

// A row for each layer that holds something at the peak, in the order of the network. What belongs
// to a part of a layer (the momentum of "fc.weight") counts for the layer. Batches come last, as
// "batches". If there are too many layers, the largest are shown and the rest is one row.
std::vector<BarRow> LayersAtPeak(const PlanRecord& plan);

}  // namespace thimble
