#include "thimble/program/make_graphs.h"

#include <fmt/format.h>

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
    for (const int64_t samples : spec_.train) THIMBLE_TRY(AddTraining(samples));
    for (const int64_t samples : spec_.evaluate) {
      THIMBLE_ASSIGN_OR_RETURN(NamedGraph graph, Forward(samples, /*training=*/false));
      graph.name = EvaluateName(samples);
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
  bool in_parts() const { return !cuts_.empty() && cuts_.at(*spec_.train.begin()).parts > 1; }

  Result<void> ChangeUpdate() {
    for (const Asked& asked : asked_) {
      THIMBLE_ASSIGN_OR_RETURN(std::string done,
                               asked.technique->ChangeUpdate(asked.value, in_parts(), update_));
      if (!done.empty()) update_records_.push_back(RecordOf(*asked.technique, std::move(done)));
    }
    return {};
  }

  Result<NamedGraph> Forward(int64_t samples, bool training) const {
    ForwardGraph forward{.samples = samples, .training = training};
    THIMBLE_ASSIGN_OR_RETURN(forward.graph, forward_(samples, training));
    NamedGraph named;
    for (const Asked& asked : asked_) {
      THIMBLE_ASSIGN_OR_RETURN(std::string done,
                               asked.technique->ChangeForward(asked.value, ops_, forward));
      if (!done.empty()) named.techniques.push_back(RecordOf(*asked.technique, std::move(done)));
    }
    if (training) {
      named.techniques.insert(named.techniques.end(), update_records_.begin(),
                              update_records_.end());
    }
    named.graph = std::move(forward.graph);
    return named;
  }

  // If full batches are trained in parts, smaller ones are too, perhaps in a single part.
  Result<void> AddTraining(int64_t samples) {
    const bool full = samples == *spec_.train.begin();
    if (in_parts()) return AddParts(cuts_.at(samples), full);
    THIMBLE_ASSIGN_OR_RETURN(NamedGraph whole, Forward(samples, /*training=*/true));
    THIMBLE_TRY(AppendUpdate(whole.graph, ops_, whole.graph.Find(kLossName), update_));
    whole.name = TrainName(samples);
    whole.runs_per_step = full ? 1 : 0;
    result_.graphs.push_back(std::move(whole));
    return {};
  }

  // Parts have at most two sizes, the larger ones first; then comes the update.
  Result<void> AddParts(const NearlyEqualParts& parts, bool full) {
    NamedGraph update{.name = UpdateName(parts.total), .runs_per_step = full ? 1 : 0};
    for (int64_t first = 0; first < parts.parts;) {
      const BatchShare share{parts.Size(first), parts.total};
      int64_t end = first;
      while (end < parts.parts && parts.Size(end) == share.samples) ++end;
      THIMBLE_ASSIGN_OR_RETURN(NamedGraph part, Forward(share.samples, /*training=*/true));
      if (first == 0) {
        THIMBLE_ASSIGN_OR_RETURN(update.graph, MakeUpdateGraph(part.graph, ops_, update_, share));
      }
      THIMBLE_TRY(AppendSums(part.graph, ops_, part.graph.Find(kLossName), update_, share));
      if (full && first == 0) RecordCut(part.graph);
      part.name = PartName(share);
      part.runs_per_step = full ? end - first : 0;
      result_.graphs.push_back(std::move(part));
      first = end;
    }
    result_.graphs.push_back(std::move(update));
    return {};
  }

  // Records which technique split the full batch into parts, and how.
  void RecordCut(const Graph& part) {
    NearlyEqualParts parts{*spec_.train.begin(), 1};
    for (const Asked& asked : asked_) {
      const std::string done = asked.technique->CutBatch(asked.value, parts);
      if (done.empty()) continue;
      result_.split_by = RecordOf(*asked.technique, done);
      result_.split_by->exactness =
          asked.technique->lever()->exactness(part, {.value = asked.value, .batch = parts.total});
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

std::string TrainName(int64_t samples) { return fmt::format("train {}", samples); }
std::string PartName(const BatchShare& share) {
  return fmt::format("train {} of {}", share.samples, share.batch);
}
std::string UpdateName(int64_t samples) { return fmt::format("update {}", samples); }
std::string EvaluateName(int64_t samples) { return fmt::format("evaluate {}", samples); }

NearlyEqualParts CutBatch(int64_t samples, const TechniqueRequest& techniques) {
  NearlyEqualParts parts{samples, 1};
  for (const Asked& asked : AskedTechniques(techniques)) {
    asked.technique->CutBatch(asked.value, parts);
  }
  return parts;
}

BatchCuts CutBatches(const BatchSizes& sizes, const TechniqueRequest& techniques) {
  BatchCuts cuts;
  for (const int64_t samples : sizes) cuts[samples] = CutBatch(samples, techniques);
  if (cuts.empty() || cuts.at(*sizes.begin()).parts > 1) return cuts;
  for (auto& [samples, parts] : cuts) parts = {samples, 1};
  return cuts;
}

Result<ProgramGraphs> MakeGraphs(const ProgramSpec& spec, const OpRegistry& ops,
                                 MakeForward forward) {
  return GraphMaker(spec, ops, forward).Make();
}

}  // namespace thimble
