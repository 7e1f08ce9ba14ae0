// Feeds arbitrary bytes to the reader of CIFAR files and reads every image it accepts. The first
// byte selects the version and the file that the remaining bytes replace; the other files are
// valid.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/check_error.h"
#include "fuzz/scratch_folder.h"
#include "thimble/data/cifar.h"

namespace thimble {
namespace {

constexpr std::array kFiles10 = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                 "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
constexpr std::array kFiles100 = {"train.bin", "test.bin"};

// Writes a valid file of one image for each name, except the one at `place`, which gets the bytes.
template <size_t size>
void WriteFiles(const ScratchFolder& folder, const std::array<const char*, size>& names,
                size_t record_bytes, size_t place, std::string_view bytes) {
  const std::string record(record_bytes, '\1');
  for (const char* name : names) folder.Write(name, record);
  folder.Write(names[place % size], bytes);
}

void ReadEverything(const ImageDataset& images) {
  std::vector<uint8_t> pixels(static_cast<size_t>(images.format().image_bytes()));
  for (int64_t index = 0; index < images.size(); ++index) {
    int32_t label = -1;
    THIMBLE_CHECK(images.Read(index, pixels, label).ok(), "an accepted image cannot be read");
    THIMBLE_CHECK(label >= 0 && label < images.format().classes, "label {}", label);
  }
}

void OpenAndRead(const ScratchFolder& folder, uint8_t choice, std::string_view bytes) {
  const bool ten = choice % 2 == 0;
  const size_t place = choice / 2;
  if (ten) {
    WriteFiles(folder, kFiles10, 1 + 3072, place, bytes);
  } else {
    WriteFiles(folder, kFiles100, 2 + 3072, place, bytes);
  }
  const auto data =
      OpenCifar(ten ? CifarVersion::kCifar10 : CifarVersion::kCifar100, folder.path());
  if (!data.ok()) return CheckError(data.error(), folder.path());
  ReadEverything(*data->train);
  ReadEverything(*data->test);
}

}  // namespace
}  // namespace thimble

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const thimble::ScratchFolder folder;
  if (size > 0) thimble::OpenAndRead(folder, bytes[0], thimble::AsText(bytes + 1, size - 1));
  return 0;
}
