#include "thimble/report/help/bash_completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "thimble/train/options/option_values.h"

namespace thimble {
namespace {

// Each %NAME% is replaced. bash splits words at = and at :.
constexpr std::string_view kScript =
    R"(# Completion of %NAME% for bash; generated from the program's table of options.
_%NAME%() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command= word
  local place=$((COMP_CWORD - 1)) words= files= options=
  for word in "${COMP_WORDS[@]:1:COMP_CWORD - 1}"; do
    case $word in %COMMANDS%) command=$word && break ;; esac
  done
  if [[ $current == [=:] ]]; then
    before=$current current= place=$COMP_CWORD
  fi
  if [[ $before == : ]]; then
    case ${COMP_WORDS[place - 1]} in %FOLDERS%) files=-d ;; esac
  else
    [[ $before == = ]] && before=${COMP_WORDS[place - 1]}
    case $command:$before in
%VALUES%    *)
      case $command in
        '') words='%COMMAND_WORDS%' options='%PROGRAM_OPTIONS%' ;;
%OPTIONS%      esac
      [[ $current == -* || -z $words$files ]] && words=$options files=
      ;;
    esac
  fi
  COMPREPLY=()
  [[ -n $words ]] && mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  if [[ -n $files ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen "$files" -- "$current")
  fi
  # The user types the rest of these words: add no space.
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[-:] ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -F _%NAME% %NAME%
)";

void Replace(std::string& text, std::string_view what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
}

// "--help" of "-h, --help".
std::string LongName(const HelpOption& option) {
  return option.name.substr(option.name.rfind(' ') + 1);
}

std::string NamesOf(const std::vector<HelpOption>& options) {
  std::vector<std::string> names;
  for (const HelpOption& option : options) names.push_back(LongName(option));
  return fmt::format("{}", fmt::join(names, " "));
}

// The words and files to offer for a value, as assignments in the script.
std::string OfferOf(std::string_view value) {
  std::vector<std::string> words;
  std::string files;
  for (const OptionValue& choice : ValuesOf(value)) {
    if (!choice.word.empty()) words.push_back(choice.word);
    if (choice.word.empty() && choice.is_folder) files = " files=-d";
    if (choice.word.empty() && choice.is_file) files = " files=-f";
  }
  return fmt::format("words='{}'{}", fmt::join(words, " "), files);
}

// A case per offer, with patterns "command:option", or "*:option" if the option takes the same
// values in all commands.
std::string ValueCases(const HelpProgram& program) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> commands;
  for (const HelpCommand& command : program.commands) {
    for (const HelpOption& option : command.options) {
      if (option.value.empty()) continue;
      commands[LongName(option)][OfferOf(option.value)].push_back(command.name);
    }
  }
  std::map<std::string, std::vector<std::string>> patterns;
  for (const auto& [option, offers] : commands) {
    for (const auto& [offer, names] : offers) {
      for (const std::string& name : names) {
        if (offers.size() > 1) patterns[offer].push_back(fmt::format("{}:{}", name, option));
      }
      if (offers.size() == 1) patterns[offer].push_back("*:" + option);
    }
  }
  std::string cases;
  for (const auto& [offer, list] : patterns) {
    cases += fmt::format("      {}) {} ;;\n", fmt::join(list, " | "), offer);
  }
  return cases;
}

std::string OptionCases(const HelpProgram& program) {
  std::string cases;
  for (const HelpCommand& command : program.commands) {
    const std::string words = command.words.empty() ? "" : OfferOf(command.words[0].value) + " ";
    cases += fmt::format("        {}) {}options='{}' ;;\n", command.name, words,
                         NamesOf(command.options));
  }
  return cases;
}

// The words that a folder follows: cifar10 of cifar10:DIR.
std::string FolderWords(const HelpProgram& program) {
  std::set<std::string> words = {"''"};  // never an empty pattern
  for (const HelpCommand& command : program.commands) {
    for (const HelpOption& option : command.options) {
      for (const OptionValue& choice : ValuesOf(option.value)) {
        if (choice.is_folder && choice.word.ends_with(':')) {
          words.insert(choice.word.substr(0, choice.word.size() - 1));
        }
      }
    }
  }
  return fmt::format("{}", fmt::join(words, " | "));
}

}  // namespace

std::string BashCompletion(const HelpProgram& program) {
  std::vector<std::string> names;
  for (const HelpCommand& command : program.commands) names.push_back(command.name);
  std::string script(kScript);
  Replace(script, "%NAME%", program.name);
  Replace(script, "%COMMANDS%", fmt::format("{}", fmt::join(names, " | ")));
  Replace(script, "%COMMAND_WORDS%", fmt::format("{}", fmt::join(names, " ")));
  Replace(script, "%PROGRAM_OPTIONS%", NamesOf(program.options));
  Replace(script, "%FOLDERS%", FolderWords(program));
  Replace(script, "%VALUES%", ValueCases(program));
  Replace(script, "%OPTIONS%", OptionCases(program));
  return script;
}

}  // namespace thimble
