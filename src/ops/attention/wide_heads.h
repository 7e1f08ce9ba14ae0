// attention and its gradient on a GPU for heads of any number of channels: slower, for calls that
// attention_cuda.cu cannot run. A warp works on a query of a head, or in backward also on a source
// of one; numbers of all types are read alike.
#pragma once

#include "thimble/graph/kernel.h"
#include "thimble/ops/attention/sizes.h"

namespace thimble {

// Whether a call needs these. Depends on the network, but for sentences of a million tokens.
bool NeedsWideHeads(const AttentionSizes& sizes);
// Why these cannot run a call that needs them: too many sources or channels.
std::string_view WideHeadsDecline(const OpCall& call);
void RunWideAttention(const KernelCall& call);
// Scratch: dq as floats, and three numbers for each query and head.
void RunWideAttentionGrad(const KernelCall& call);

}  // namespace thimble
