// Feeds arbitrary files of a run folder to the report: config.toml, plan.json, metrics.jsonl and
// summary.json, separated by zero bytes. An empty part means that the file is missing.
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "fuzz/check_error.h"
#include "fuzz/scratch_folder.h"
#include "thimble/report/pages/comparison_page.h"
#include "thimble/report/pages/report_page.h"
#include "thimble/report/pages/run_record.h"

namespace thimble {
namespace {

constexpr std::array kFiles = {"config.toml", "plan.json", "metrics.jsonl", "summary.json"};

void Unpack(const ScratchFolder& folder, std::string_view files) {
  for (const char* name : kFiles) {
    const size_t end = files.find('\0');
    const std::string path = folder.Write(name, files.substr(0, end));
    if (end == 0 || files.empty()) std::filesystem::remove(path);
    files.remove_prefix(end == std::string_view::npos ? files.size() : end + 1);
  }
}

void ReadAndReport(const std::string& folder) {
  const Result<RunRecord> run = ReadRunFolder(folder);
  if (!run.ok()) return CheckError(run.error(), folder);
  THIMBLE_CHECK(ReportPage(*run).ends_with("</html>\n"), "the page is incomplete");
  THIMBLE_CHECK(!ReportPlots(*run).empty(), "no plots");
  THIMBLE_CHECK(ComparisonPage({*run, *run}).ends_with("</html>\n"), "the page is incomplete");
}

}  // namespace
}  // namespace thimble

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const thimble::ScratchFolder folder;
  thimble::Unpack(folder, thimble::AsText(bytes, size));
  thimble::ReadAndReport(folder.path());
  return 0;
}
