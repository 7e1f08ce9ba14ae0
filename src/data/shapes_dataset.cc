#include "thimble/data/shapes_dataset.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "thimble/base/check.h"
#include "thimble/data/shape_outlines.h"

namespace thimble {
namespace {

constexpr int kShapesSide = 32;
constexpr int kShapesChannels = 3;
using Coverage = std::array<float, kShapesSide * kShapesSide>;  // (H, W): fraction of the pixel
                                                                // covered by the figure

// How the images vary. Chosen by experiment: after training on 10,000 images a linear classifier
// reaches 33 % on the test split, a WideResNet-16-2 97 to 100 % (README.md). With radii of 8 to 12,
// noise of 12 and a minimum contrast of 50, a linear one reaches 24 %, and 120 steps of 100 images
// give only 95.6 %.
constexpr float kMinRadius = 9;  // pixels
constexpr float kMaxRadius = 13;
constexpr float kMaxHalfTurn = 0.27F;  // tangent of half the largest rotation: 30 degrees
constexpr float kMinDark = 20;         // the darker of figure and background, per channel
constexpr float kMaxDark = 110;
constexpr float kMinContrast = 60;
constexpr float kMaxContrast = 125;
constexpr float kBrightFigures = 0.7F;  // fraction of images whose figure is the brighter
constexpr float kMaxGradient = 20;      // change from the centre of the image to its edge
constexpr float kMaxNoise = 8;          // uniform, per byte

// Counter space of one image: the scene's random numbers first, the noise from here on.
constexpr uint64_t kNoiseElement = 256;

// The sequence of uniform random numbers of one image.
class Draws {
 public:
  Draws(const RandomSource& source, uint32_t split, uint32_t index)
      : source_(source), split_(split), index_(index) {}

  float Between(float low, float high) { return low + (high - low) * UniformFloat(NextWord()); }

 private:
  uint32_t NextWord() {
    if (used_ % 4 == 0) words_ = source_.Words(split_, index_, used_ / 4);
    return words_[used_++ % 4];
  }

  const RandomSource& source_;
  uint32_t split_;
  uint32_t index_;
  uint64_t used_ = 0;
  std::array<uint32_t, 4> words_{};
};

struct Scene {
  float center_x, center_y, radius;  // pixels
  float cosine, sine;                // of the rotation
  std::array<float, kShapesChannels> ground, figure_less_ground;
  float gradient_x, gradient_y;  // per pixel
};

void DrawColours(Draws& draws, Scene& scene) {
  const bool bright_figure = draws.Between(0, 1) < kBrightFigures;
  for (int channel = 0; channel < kShapesChannels; ++channel) {
    const float dark = draws.Between(kMinDark, kMaxDark);
    const float contrast = draws.Between(kMinContrast, kMaxContrast);
    scene.ground[channel] = bright_figure ? dark : dark + contrast;
    scene.figure_less_ground[channel] = bright_figure ? contrast : -contrast;
  }
}

Scene DrawScene(Draws& draws) {
  Scene scene{};
  scene.radius = draws.Between(kMinRadius, kMaxRadius);
  // The unit circle around the figure stays inside the image.
  scene.center_x = draws.Between(scene.radius, kShapesSide - scene.radius);
  scene.center_y = draws.Between(scene.radius, kShapesSide - scene.radius);
  // Rational points on the circle instead of sine and cosine, whose last bit depends on the
  // library.
  const float half_turn = draws.Between(-kMaxHalfTurn, kMaxHalfTurn);
  const float scale = 1 / (1 + half_turn * half_turn);
  scene.cosine = (1 - half_turn * half_turn) * scale;
  scene.sine = 2 * half_turn * scale;
  DrawColours(draws, scene);
  scene.gradient_x = draws.Between(-kMaxGradient, kMaxGradient) / (kShapesSide / 2);
  scene.gradient_y = draws.Between(-kMaxGradient, kMaxGradient) / (kShapesSide / 2);
  return scene;
}

// Signed distance to coverage: a pixel whose centre is on the outline is half covered.
template <class Outline>
void Cover(const Scene& scene, Outline outline, Coverage& coverage) {
  const float inverse_radius = 1 / scene.radius;
  for (int y = 0; y < kShapesSide; ++y) {
    const float from_center_y = (static_cast<float>(y) + 0.5F - scene.center_y) * inverse_radius;
    for (int x = 0; x < kShapesSide; ++x) {
      const float from_center_x = (static_cast<float>(x) + 0.5F - scene.center_x) * inverse_radius;
      const float u = scene.cosine * from_center_x + scene.sine * from_center_y;
      const float v = scene.cosine * from_center_y - scene.sine * from_center_x;
      coverage[y * kShapesSide + x] = std::clamp(0.5F - outline(u, v) * scene.radius, 0.0F, 1.0F);
    }
  }
}

void Cover(const Scene& scene, ShapeClass shape, Coverage& coverage) {
  switch (shape) {
    case ShapeClass::kDisc:
      return Cover(scene, DiscOutline(), coverage);
    case ShapeClass::kRing:
      return Cover(scene, RingOutline(), coverage);
    case ShapeClass::kSquare:
      return Cover(scene, SquareOutline(), coverage);
    case ShapeClass::kTriangle:
      return Cover(scene, TriangleOutline(), coverage);
    case ShapeClass::kPlus:
      return Cover(scene, PlusOutline(), coverage);
    case ShapeClass::kStar:
      return Cover(scene, StarOutline(), coverage);
    case ShapeClass::kCrescent:
      return Cover(scene, CrescentOutline(), coverage);
    case ShapeClass::kCorner:
      return Cover(scene, CornerOutline(), coverage);
    case ShapeClass::kBars:
      return Cover(scene, BarsOutline(), coverage);
    case ShapeClass::kChecker:
      return Cover(scene, CheckerOutline(), coverage);
  }
}

// Noise for four bytes from each word, four words from each draw.
using NoiseBytes = std::array<uint8_t, kShapesSide * kShapesSide * kShapesChannels>;
void DrawNoise(const RandomSource& source, uint32_t split, uint32_t index, NoiseBytes& noise) {
  for (size_t block = 0; block < noise.size() / 16; ++block) {
    const auto words = source.Words(split, index, kNoiseElement + block);
    for (size_t i = 0; i < 16; ++i) {
      noise[block * 16 + i] = static_cast<uint8_t>(words[i / 4] >> (8 * (i % 4)));
    }
  }
}

void Paint(const Scene& scene, const Coverage& coverage, const NoiseBytes& noise,
           std::span<uint8_t> pixels) {
  constexpr float kMiddle = (kShapesSide - 1) / 2.0F;
  for (int pixel = 0; pixel < kShapesSide * kShapesSide; ++pixel) {
    const float light = (static_cast<float>(pixel % kShapesSide) - kMiddle) * scene.gradient_x +
                        (static_cast<float>(pixel / kShapesSide) - kMiddle) * scene.gradient_y;
    for (int channel = 0; channel < kShapesChannels; ++channel) {
      const int byte = pixel * kShapesChannels + channel;
      const float value = scene.ground[channel] + light +
                          coverage[pixel] * scene.figure_less_ground[channel] +
                          (static_cast<float>(noise[byte]) - 127.5F) * (kMaxNoise / 127.5F);
      pixels[byte] = static_cast<uint8_t>(std::clamp(value, 0.0F, 255.0F) + 0.5F);
    }
  }
}

}  // namespace

ShapesDataset::ShapesDataset(uint64_t seed, ShapesSplit split, int64_t size)
    : source_(seed, RandomPurpose::kShapes), split_(split), size_(size) {
  THIMBLE_CHECK(size >= 1 && size <= INT32_MAX, "a shapes data set of {} images", size);
  format_ = {kShapesSide, kShapesSide, kShapesChannels, kShapeClasses, {}, {}};
  // Measured on 30,000 images; all channels have the same distribution by construction.
  format_.mean.assign(kShapesChannels, 99.2);
  format_.std.assign(kShapesChannels, 53.0);
}

Result<void> ShapesDataset::Read(int64_t index, std::span<uint8_t> pixels, int32_t& label) const {
  THIMBLE_CHECK(index >= 0 && index < size_, "image {} of {}", index, size_);
  THIMBLE_CHECK(std::ssize(pixels) == format_.image_bytes());
  label = static_cast<int32_t>(index % kShapeClasses);
  const auto split = static_cast<uint32_t>(split_);
  const auto sample = static_cast<uint32_t>(index);
  Draws draws(source_, split, sample);
  const Scene scene = DrawScene(draws);
  Coverage coverage;
  Cover(scene, static_cast<ShapeClass>(label), coverage);
  NoiseBytes noise;
  DrawNoise(source_, split, sample, noise);
  Paint(scene, coverage, noise, pixels);
  return {};
}

}  // namespace thimble
