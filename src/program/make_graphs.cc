#include "thimble/program/make_graphs.h"

#include <fmt/format.h>

#include <algorithm>

#include "thimble/program/techniques.h"

namespace thimble {
namespace {

// A requested technique and the value of its lever.
struct Asked {
  const Technique* technique = nullptr;
  std::string value;
};

std::vector<Asked> AskedTechniques(const TechniqueRequest& request) {
  std::vector<Asked> asked;
  for (const auto& technique : Techniques()) {
    if (request.without.contains(std::string(technique->Info().name))) continue;
    const Lever* lever = technique->lever();
    if (lever == nullptr) {
      asked.push_back({technique.get(), ""});
      continue;
    }
    const auto value = request.values.find(lever->name);
    const std::string& text = value == request.values.end() ? lever->plain : value->second;
    if (text != lever->plain) asked.push_back({technique.get(), text});
  }
  return asked;
}

class GraphMaker {
 public:
  GraphMaker(const ProgramSpec& spec, const OpRegistry& ops, MakeForward forward)
      : spec_(spec),
        ops_(ops),
        forward_(forward),
        asked_(AskedTechniques(spec.techniques)),
        cuts_(CutBatches(spec.train, spec.techniques)),
        update_(spec.update) {}

  Result<ProgramGraphs> Make() && {
    THIMBLE_TRY(ChangeUpdate());
    for (const BatchShape& shape : spec_.train) THIMBLE_TRY(AddTraining(shape));
    for (const BatchShape& shape : spec_.evaluate) {
      THIMBLE_ASSIGN_OR_RETURN(NamedGraph graph, Forward(shape, /*training=*/false));
      graph.name = EvaluateName(shape);
      result_.graphs.push_back(std::move(graph));
    }
    for (const NamedGraph& other : spec_.others) {
      THIMBLE_ASSIGN_OR_RETURN(NamedGraph graph,
                               Changed({.graph = other.graph, .samples = 0, .training = false}));
      graph.name = other.name;
      graph.group = other.group;
      result_.graphs.push_back(std::move(graph));
    }
    for (const Asked& asked : asked_) {
      THIMBLE_ASSIGN_OR_RETURN(
          const std::string done,
          asked.technique->ChangeProgram(asked.value, ops_, update_, result_.graphs));
      if (done.empty()) continue;
      for (NamedGraph& graph : result_.graphs) {
        graph.techniques.push_back(RecordOf(*asked.technique, done));
      }
    }
    result_.update = update_;
    return std::move(result_);
  }

 private:
  bool in_parts() const { return InParts(cuts_); }

  Result<void> ChangeUpdate() {
    for (const Asked& asked : asked_) {
      THIMBLE_ASSIGN_OR_RETURN(std::string done,
                               asked.technique->ChangeUpdate(asked.value, in_parts(), update_));
      if (!done.empty()) update_records_.push_back(RecordOf(*asked.technique, std::move(done)));
    }
    return {};
  }

  Result<NamedGraph> Forward(const BatchShape& shape, bool training) const {
    ForwardGraph forward{.samples = shape.samples, .training = training};
    THIMBLE_ASSIGN_OR_RETURN(forward.graph, forward_(shape, training));
    return Changed(std::move(forward));
  }

  Result<NamedGraph> Changed(ForwardGraph forward) const {
    NamedGraph named;
    for (const Asked& asked : asked_) {
      THIMBLE_ASSIGN_OR_RETURN(std::string done,
                               asked.technique->ChangeForward(asked.value, ops_, forward));
      if (!done.empty()) named.techniques.push_back(RecordOf(*asked.technique, std::move(done)));
    }
    if (forward.training) {
      named.techniques.insert(named.techniques.end(), update_records_.begin(),
                              update_records_.end());
    }
    named.graph = std::move(forward.graph);
    return named;
  }

  Result<void> AddTraining(const BatchShape& shape) {
    const bool full = shape == spec_.train.front();
    if (in_parts()) return AddParts(shape, full);
    THIMBLE_ASSIGN_OR_RETURN(NamedGraph whole, Forward(shape, /*training=*/true));
    THIMBLE_TRY(AppendUpdate(whole.graph, ops_, whole.graph.Find(kLossName), update_));
    whole.name = TrainName(shape);
    whole.runs_per_step = full ? 1 : 0;
    result_.graphs.push_back(std::move(whole));
    return {};
  }

  // Parts have at most two sizes, the larger ones first; then comes the update.
  Result<void> AddParts(const BatchShape& shape, bool full) {
    const NearlyEqualParts& parts = cuts_.at(shape);
    NamedGraph update{.name = UpdateName(shape), .runs_per_step = full ? 1 : 0};
    for (int64_t first = 0; first < parts.parts;) {
      const BatchShare share{parts.Size(first), parts.total};
      const BatchShape part_shape = shape.With(share.samples);
      int64_t end = first;
      while (end < parts.parts && parts.Size(end) == share.samples) ++end;
      THIMBLE_ASSIGN_OR_RETURN(NamedGraph part, Forward(part_shape, /*training=*/true));
      if (first == 0) {
        THIMBLE_ASSIGN_OR_RETURN(update.graph, MakeUpdateGraph(part.graph, ops_, update_, share));
      }
      THIMBLE_TRY(AppendSums(part.graph, ops_, part.graph.Find(kLossName), update_, share));
      if (full && first == 0) RecordCut(part.graph);
      part.name = PartName(part_shape, shape);
      part.runs_per_step = full ? end - first : 0;
      result_.graphs.push_back(std::move(part));
      first = end;
    }
    const auto same_name = [&](const NamedGraph& made) { return made.name == update.name; };
    if (std::any_of(result_.graphs.begin(), result_.graphs.end(), same_name)) return {};
    result_.graphs.push_back(std::move(update));
    return {};
  }

  // Records which technique split the full batch into parts, and how.
  void RecordCut(const Graph& part) {
    const BatchShape& full = spec_.train.front();
    NearlyEqualParts parts{full.samples, 1};
    for (const Asked& asked : asked_) {
      const std::string done = asked.technique->CutBatch(asked.value, full, parts);
      if (done.empty()) continue;
      result_.split_by = RecordOf(*asked.technique, done);
      result_.split_by->exactness =
          asked.technique->lever()->exactness(part, {.value = asked.value, .batch = full.size()});
    }
  }

  const ProgramSpec& spec_;
  const OpRegistry& ops_;
  MakeForward forward_;
  std::vector<Asked> asked_;
  BatchCuts cuts_;
  UpdateSpec update_;
  std::vector<TechniqueRecord> update_records_;
  ProgramGraphs result_;
};

}  // namespace

std::string TrainName(const BatchShape& shape) { return fmt::format("train {}", ToString(shape)); }
std::string PartName(const BatchShape& part, const BatchShape& batch) {
  return fmt::format("train {} of {}", part.samples, ToString(batch));
}
// Images may have batch statistics, whose update depends on the samples.
std::string UpdateName(const BatchShape& shape) {
  return shape.sample_size() == 1 ? fmt::format("update {}", shape.samples) : "update";
}
std::string EvaluateName(const BatchShape& shape) {
  return fmt::format("evaluate {}", ToString(shape));
}

NearlyEqualParts CutBatch(const BatchShape& shape, const TechniqueRequest& techniques) {
  NearlyEqualParts parts{shape.samples, 1};
  for (const Asked& asked : AskedTechniques(techniques)) {
    asked.technique->CutBatch(asked.value, shape, parts);
  }
  return parts;
}

BatchCuts CutBatches(const BatchShapes& shapes, const TechniqueRequest& techniques) {
  BatchCuts cuts;
  for (const BatchShape& shape : shapes) cuts[shape] = CutBatch(shape, techniques);
  return cuts;
}

bool InParts(const BatchCuts& cuts) {
  return std::any_of(cuts.begin(), cuts.end(),
                     [](const auto& cut) { return cut.second.parts > 1; });
}

Result<ProgramGraphs> MakeGraphs(const ProgramSpec& spec, const OpRegistry& ops,
                                 MakeForward forward) {
  return GraphMaker(spec, ops, forward).Make();
}

}  // namespace thimble
