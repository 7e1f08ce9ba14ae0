#include "thimble/plan/passes/order.h"

#include <string>
#include <utility>
#include <vector>

#include "thimble/plan/order/find_orders.h"
#include "thimble/plan/passes/in_place.h"

namespace thimble {
namespace {

class OrderPass final : public PlanPass {
 public:
  PassInfo Info() const override {
    return {.name = "order",
            .exactness = Exactness::kSameBits,
            .what = "run nodes in an order that keeps fewer bytes alive",
            .decides = Decides::kOrder};
  }

  Result<std::string> Run(PlanDraft& draft, const OpRegistry& ops,
                          const PlanOptions& options) const override {
    // Orders are compared as the later passes will see them, with values computed in place.
    const bool shares = IsDecided(Decides::kStorage, options);
    const auto peak = [&](const std::vector<NodeId>& order) {
      PlanDraft trial = draft;
      trial.order = order;
      if (shares) trial.storage = ShareInPlace(trial, ops);
      return LivePeakBytes(trial);
    };
    size_t best = peak(draft.order);
    std::string what = "no other order keeps fewer bytes alive";
    for (FoundOrder& found : FindOrders(draft.graph)) {
      const size_t bytes = peak(found.order);
      if (bytes >= best) continue;
      best = bytes;
      draft.order = std::move(found.order);
      what = found.how;
    }
    return what;
  }
};

}  // namespace

std::unique_ptr<PlanPass> MakeOrderPass() { return std::make_unique<OrderPass>(); }

}  // namespace thimble
