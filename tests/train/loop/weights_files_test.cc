#include "thimble/train/loop/weights_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/file_fixture.h"
#include "tests/train/tiny_run.h"
#include "thimble/program/sparsity/pack_graph.h"
#include "thimble/train/weights/safetensors_reader.h"

namespace thimble {
namespace {

using testing::HasSubstr;

class WeightsFiles : public FileFixture {
 protected:
  static TrainConfig Sparse(const std::string& precision = "fp32") {
    TrainConfig config = TinyConfig();
    config.levers = {{"sparsity", "0.7"}, {"precision", precision}};
    return config;
  }
  static std::vector<std::byte> Bytes(const TinyRun& run, const char* resident) {
    const auto bytes = run.executor->ResidentBytes(resident);
    return {bytes.begin(), bytes.end()};
  }
  std::string path() const { return folder_ + "/weights.safetensors"; }
};

TEST_F(WeightsFiles, SparsePathIsBesideTheDenseOne) {
  EXPECT_EQ(SparsePath("a.b/weights.safetensors"), "a.b/weights.sparse.safetensors");
  EXPECT_EQ(SparsePath("weights"), "weights.sparse");
}

TEST_F(WeightsFiles, DenseRunsHaveOneFile) {
  const TinyRun run;
  ASSERT_TRUE(SaveWeightsOf(*run.executor, path(), {}).ok());
  EXPECT_FALSE(SafetensorsReader::Open(SparsePath(path())).ok());
}

TEST_F(WeightsFiles, TheSparseFileLoadsBackExactly) {
  for (const char* precision : {"fp32", "fp16"}) {
    const TinyRun run(Sparse(precision));
    ASSERT_TRUE(SaveWeightsOf(*run.executor, path(), {}).ok());
    TrainConfig other = Sparse(precision);
    other.seed = 9;
    const TinyRun loaded(other);
    EXPECT_NE(Bytes(run, kSparsePattern), Bytes(loaded, kSparsePattern));
    const auto result = LoadInitialWeights(SparsePath(path()), *loaded.executor);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(Bytes(run, kSparsePattern), Bytes(loaded, kSparsePattern));
    EXPECT_EQ(Bytes(run, kSparseWeights), Bytes(loaded, kSparseWeights));
  }
}

// With the same pattern, the dense file has all that is stored.
TEST_F(WeightsFiles, TheDenseFileHasTheActiveWeights) {
  const TinyRun run(Sparse());
  ASSERT_TRUE(SaveWeightsOf(*run.executor, path(), {}).ok());
  const TinyRun same(Sparse());
  const auto pool = same.executor->ResidentBytes(kSparseWeights);
  std::ranges::fill(pool, std::byte{0});
  ASSERT_TRUE(LoadInitialWeights(path(), *same.executor).ok());
  EXPECT_EQ(Bytes(run, kSparseWeights), Bytes(same, kSparseWeights));
  const TinyRun dense;
  EXPECT_TRUE(LoadInitialWeights(path(), *dense.executor).ok()) << "as a dense network reads it";
}

TEST_F(WeightsFiles, RefusesASparseFileForAnotherSparsity) {
  const TinyRun run(Sparse());
  ASSERT_TRUE(SaveWeightsOf(*run.executor, path(), {}).ok());
  TrainConfig other = Sparse();
  other.levers["sparsity"] = "0.5";
  const TinyRun denser(other);
  const auto loaded = LoadInitialWeights(SparsePath(path()), *denser.executor);
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, HasSubstr("expected tensor \"sparse.weights\""));
}

}  // namespace
}  // namespace thimble
