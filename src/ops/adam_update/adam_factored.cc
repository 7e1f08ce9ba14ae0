// Adam whose second moment is a matrix of rank one: of a parameter with R rows (its first
// dimension) and C columns, only the means of its rows and of its columns are kept, R + C numbers
// instead of R * C (the idea is Adafactor's). With g = gradient_factor * gradient and t = update +
// 1:
//   next_m = beta1 * m + (1 - beta1) * g
//   next_rows[i] = beta2 * rows[i] + (1 - beta2) * mean over j of g[i, j]^2
//   next_columns[j] = beta2 * columns[j] + (1 - beta2) * mean over i of g[i, j]^2
//   v[i, j] = next_rows[i] * next_columns[j] / mean of next_rows
//   next_weight = weight - learning_rate * (m' / (sqrt(v') + epsilon) + weight_decay * weight)
// with m' and v' as in adam_update. Where all rows are proportional, v is that of adam_update.
//
// Means are always floats. adam_factored_gather and adam_factored_apply divide the update between
// parts of a batch, as adam_gather and adam_apply do.
#include "thimble/ops/adam_update/adam_factored.h"

#include <algorithm>

#include "thimble/ops/adam_update/adam_ops.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

template <class T>
class FactoredReference {
 public:
  FactoredReference(const ReferenceCall<T>& call, const AdamFactoredInputs& where)
      : call_(call), where_(where), matrix_(call.in_shape(0)), factors_(FactorsOf()) {
    const size_t factor = where.inputs.factor;
    factor_ = call.op.inputs.size() > factor ? call.In(factor)[0] : T(1);
  }

  T factor() const { return factor_; }
  bool first() const { return SeenOf() == 0; }

  // The next first moment and means; `gradient` and the others are places among the inputs, `next`
  // is that of the first output.
  void Gather(size_t gradient, size_t moment, size_t next) const {
    const T kept1 = first() ? T(factors_.beta1) : T(1);
    const T kept2 = first() ? T(factors_.beta2) : T(1);
    std::vector<T> rows(Size(matrix_.rows)), columns(Size(matrix_.columns));
    for (int64_t i = 0; i < matrix_.rows; ++i) {
      for (int64_t j = 0; j < matrix_.columns; ++j) {
        const int64_t at = i * matrix_.columns + j;
        const T g = factor_ == T(0) ? T(0) : factor_ * call_.In(gradient)[at];
        call_.Out(next)[at] = kept1 * call_.In(moment)[at] + T(factors_.new_share1) * g;
        rows[Size(i)] += g * g;
        columns[Size(j)] += g * g;
      }
    }
    const auto add = [&](size_t input, const std::vector<T>& sums, int64_t count, size_t output) {
      for (size_t i = 0; i < sums.size(); ++i) {
        const T mean = sums[i] / T(static_cast<double>(count));
        call_.Out(output)[i] = kept2 * call_.In(input)[i] + T(factors_.new_share2) * mean;
      }
    };
    add(where_.rows, rows, matrix_.columns, next + 1);
    add(where_.columns, columns, matrix_.rows, next + 2);
  }

  void Apply(const T* moment, const T* rows, const T* columns) const {
    using std::sqrt;
    T mean = T(0);
    for (int64_t i = 0; i < matrix_.rows; ++i) mean += rows[i];
    mean /= T(static_cast<double>(matrix_.rows));
    for (int64_t at = 0; at < matrix_.rows * matrix_.columns; ++at) {
      const T product = rows[at / matrix_.columns] * columns[at % matrix_.columns];
      const T root = mean == T(0) ? T(0) : sqrt(product / mean);
      const T weight = call_.In(0)[at];
      const T step =
          moment[at] * T(factors_.rate) / (root * T(factors_.root_scale) + T(factors_.epsilon));
      call_.Out(0)[at] = weight - (step + T(factors_.decay) * weight);
    }
  }

 private:
  static size_t Size(int64_t size) { return static_cast<size_t>(size); }
  int32_t SeenOf() const {
    const size_t seen = where_.inputs.seen;
    return seen == kNoAdamInput ? 0 : call_.template InAs<int32_t>(seen)[0];
  }
  AdamFactors FactorsOf() const {
    const AdamInputs& inputs = where_.inputs;
    const double rate = inputs.rate == kNoAdamInput ? 0 : RealPart(call_.In(inputs.rate)[0]);
    return {AdamSpecOf(call_.op.attributes, inputs), rate,
            call_.template InAs<int32_t>(inputs.update)[0]};
  }

  const ReferenceCall<T>& call_;
  const AdamFactoredInputs& where_;
  AdamMatrix matrix_;
  AdamFactors factors_;
  T factor_;
};

struct AdamFactoredUpdateReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const FactoredReference<T> reference(call, kFactoredUpdateInputs);
    if (reference.factor() == T(0)) {
      for (const auto& [input, output] : {std::pair{0, 0}, {2, 1}, {3, 2}, {4, 3}}) {
        const auto out = static_cast<size_t>(output);
        std::copy_n(call.In(static_cast<size_t>(input)), call.out_shape(out).elements(),
                    call.Out(out));
      }
      return;
    }
    reference.Gather(1, 2, 1);
    reference.Apply(call.Out(1), call.Out(2), call.Out(3));
  }
};

struct AdamFactoredGatherReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    FactoredReference<T>(call, kFactoredGatherInputs).Gather(0, 1, 0);
  }
};

struct AdamFactoredApplyReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    FactoredReference<T>(call, kFactoredApplyInputs).Apply(call.In(1), call.In(2), call.In(3));
  }
};

// `arrays` outputs like the first input; then, unless only weights change, the means.
ShapeFunction FactoredShapes(const AdamFactoredInputs& where, size_t arrays,
                             const std::vector<std::string_view>& names) {
  return [=](const OpCall& call) -> Result<std::vector<Shape>> {
    const Shape& shape = call.inputs[0];
    if (shape.rank() < 2) {
      return BadInput(fmt::format("{} has the shape {}, expected at least two dimensions", names[0],
                                  ToString(shape)));
    }
    const AdamMatrix matrix(shape);
    for (size_t i = 1; i < call.inputs.size(); ++i) {
      Shape expected = i < where.inputs.arrays ? shape : Shape{1};
      if (i == where.rows) expected = {matrix.rows};
      if (i == where.columns) expected = {matrix.columns};
      THIMBLE_TRY(RequireShape(names[i], call.inputs[i], expected));
    }
    THIMBLE_TRY(CheckAdamSpec(AdamSpecOf(call.attributes, where.inputs)));
    THIMBLE_TRY(CheckRounding(call.attributes, /*has_update=*/true));
    std::vector<Shape> outputs(arrays, shape);
    if (names.back() == "gradient_factor") {
      outputs.push_back({matrix.rows});
      outputs.push_back({matrix.columns});
    }
    return outputs;
  };
}

// Reads everything twice.
FlopFunction FlopsOf(int64_t per_element) {
  return [=](const OpCall& call) { return per_element * call.inputs[0].elements(); };
}

}  // namespace

OpDef Make_adam_factored_update() {
  OpDef op("adam_factored_update");
  op.Input("weight")
      .Input("gradient")
      .StateInput("first_moment")
      .Input("row_means", DType::kF32)
      .Input("column_means", DType::kF32)
      .Input("learning_rate", DType::kF32)
      .Input("update", DType::kI32)
      .OptionalInput("gradient_factor", DType::kF32)
      .Output("next_weight")
      .StateOutput("next_first_moment")
      .Output("next_row_means", DType::kF32)
      .Output("next_column_means", DType::kF32)
      .Attribute("epsilon", 1e-8)
      .Attribute("weight_decay", 0.0)
      .ShapeRule(FactoredShapes(kFactoredUpdateInputs, 2,
                                {"weight", "gradient", "first_moment", "row_means", "column_means",
                                 "learning_rate", "update", "gradient_factor"}))
      .OutputMayReuse("next_weight", "weight")
      .OutputMayReuse("next_first_moment", "first_moment")
      .OutputMayReuse("next_row_means", "row_means")
      .OutputMayReuse("next_column_means", "column_means")
      // Scaling 1, sums of squares 3, first moment 3, root 1, step 4, weight 3.
      .Flops(FlopsOf(15))
      .CpuKernel<AdamFactoredUpdateCpu>("AdamFactoredUpdateCpu")
      .CudaKernel<AdamFactoredUpdateCuda>("AdamFactoredUpdateCuda")
      .Reference<AdamFactoredUpdateReference>();
  return AddAdamAttributes(op);
}

OpDef Make_adam_factored_gather() {
  OpDef op("adam_factored_gather");
  op.Input("gradient")
      .StateInput("first_moment")
      .Input("row_means", DType::kF32)
      .Input("column_means", DType::kF32)
      .Input("seen", DType::kI32)  // samples in earlier parts
      .Input("update", DType::kI32)
      .OptionalInput("gradient_factor", DType::kF32)
      .StateOutput("next_first_moment")
      .Output("next_row_means", DType::kF32)
      .Output("next_column_means", DType::kF32)
      .ShapeRule(FactoredShapes(kFactoredGatherInputs, 1,
                                {"gradient", "first_moment", "row_means", "column_means", "seen",
                                 "update", "gradient_factor"}))
      .OutputMayReuse("next_first_moment", "first_moment")
      .OutputMayReuse("next_row_means", "row_means")
      .OutputMayReuse("next_column_means", "column_means")
      .Flops(FlopsOf(7))
      .CpuKernel<AdamFactoredGatherCpu>("AdamFactoredGatherCpu")
      .CudaKernel<AdamFactoredGatherCuda>("AdamFactoredGatherCuda")
      .Reference<AdamFactoredGatherReference>();
  return AddAdamAttributes(op);
}

OpDef Make_adam_factored_apply() {
  OpDef op("adam_factored_apply");
  op.Input("weight")
      .StateInput("first_moment")
      .Input("row_means", DType::kF32)
      .Input("column_means", DType::kF32)
      .Input("learning_rate", DType::kF32)
      .Input("update", DType::kI32)
      .Output("next_weight")
      .Attribute("epsilon", 1e-8)
      .Attribute("weight_decay", 0.0)
      .ShapeRule(FactoredShapes(
          kFactoredApplyInputs, 1,
          {"weight", "first_moment", "row_means", "column_means", "learning_rate", "update"}))
      .OutputMayReuse("next_weight", "weight")
      .Flops(FlopsOf(8))
      .CpuKernel<AdamFactoredApplyCpu>("AdamFactoredApplyCpu")
      .CudaKernel<AdamFactoredApplyCuda>("AdamFactoredApplyCuda")
      .Reference<AdamFactoredApplyReference>();
  return AddAdamAttributes(op);
}

}  // namespace thimble
