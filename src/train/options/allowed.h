// Allowed: what a budget may change (--allow). A list of terms, separated by commas:
//
//   same-bits | equal | lossy    every lever whose values are at least as exact
//   none                         nothing: the run fits as it is, or it is refused
//   recompute, sparsity          this lever
//   fp16, q8                     this value of any lever
//   microbatch>=8, sparsity<=0.8 this lever within a limit
//
// With a class, other terms only add limits to it; without one, only what is named is allowed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/plan/pass.h"
#include "thimble/program/lever.h"

namespace thimble {

class Allowed {
 public:
  // kBadInput, with what is expected, for a term that names no lever and no value.
  static Result<Allowed> Parse(std::string_view text);

  bool nothing() const { return !most_ && terms_.empty(); }
  // Whether a budget may choose this value.
  bool Permits(const Lever& lever, const std::string& value, Exactness exactness) const;

 private:
  struct Term {
    std::string name;      // of a lever, or a value
    std::string relation;  // "", "<=" or ">="
    double limit = 0;
  };

  static Result<Term> ParseTerm(std::string_view text);

  std::optional<Exactness> most_;  // the least exact class
  std::vector<Term> terms_;
};

}  // namespace thimble
