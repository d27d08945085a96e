#include "microbench/script/spawn.h"

#include <spawn.h>
#include <unistd.h>

#include <csignal>

namespace stepcast::script {
namespace {

std::vector<char*> Pointers(std::vector<std::string>* texts) {
  std::vector<char*> list;
  for (std::string& text : *texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

int SpawnApart(std::vector<std::string> words, const std::map<std::string, std::string>& variables,
               const std::vector<std::pair<int, int>>& descriptors, pid_t* pid) {
  std::vector<std::string> settings;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (variables.count(text.substr(0, text.find('='))) == 0) settings.push_back(text);
  }
  for (const auto& [name, value] : variables) settings.push_back(name + "=" + value);
  const std::vector<char*> argv = Pointers(&words);
  const std::vector<char*> environment = Pointers(&settings);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const auto& [ours, its] : descriptors) {
    posix_spawn_file_actions_adddup2(&actions, ours, its);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  const int error =
      posix_spawnp(pid, argv.front(), &actions, &attributes, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace stepcast::script
