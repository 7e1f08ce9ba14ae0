// PreparedFolder: the files of a preparation, which appear in their folder together or not at all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/data/text/subwords/prepared_file.h"

namespace thimble {

class PreparedFolder {
 public:
  // Creates the folder if it is missing. With `overwrite`, earlier files that differ are replaced.
  static Result<PreparedFolder> Open(const std::string& path, bool overwrite);

  // A file that is to be written, then kept.
  Result<PreparedFile> Create(const std::string& name) const;
  // Keeps a file until Commit. BadInput if there is an earlier one that differs and must stay.
  Result<void> Keep(PreparedFile file);
  // Create, write and keep.
  Result<void> Add(const std::string& name, std::string_view content);
  // A file of this name does not belong to the preparation: Commit removes it. BadInput if there is
  // one that must stay.
  Result<void> LeaveOut(const std::string& name);

  // Puts the files in their places, in the order of Keep, or changes nothing if all are there
  // already. Requires files. An earlier version of the last file is removed first: a folder that
  // has it is complete. Must be the last call.
  Result<void> Commit();

 private:
  PreparedFolder(std::string path, bool overwrite)
      : path_(std::move(path)), overwrite_(overwrite) {}

  std::string PathOf(const std::string& name) const { return path_ + "/" + name; }

  std::string path_;
  bool overwrite_;
  std::vector<PreparedFile> files_;
  std::vector<std::string> left_out_;  // paths
};

}  // namespace thimble
