// Runs a program as a user would, without a shell, and keeps what it printed.
#ifndef STEPCAST_TESTS_CLI_PROCESS_H_
#define STEPCAST_TESTS_CLI_PROCESS_H_

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temp_file.h"

namespace stepcast {

struct ProcessOptions {
  std::string folder = ".";                 // to run in
  std::vector<std::string> variables = {};  // "NAME=value", added to the environment
  std::string out_path = {};                // where standard output goes instead of into `out`
};

struct ProcessResult {
  int exit_code = -1;  // 128 + the signal, for one that was killed
  std::string out;
  std::string err;
  double wall_s = 0;
  double processor_s = 0;  // user and system
};

// `arguments` begins with the program's path. The environment is this process's own, but for what
// would change the program's output: a terminal's width and language, and where its data are.
inline ProcessResult RunProcess(const std::vector<std::string>& arguments,
                                const ProcessOptions& options = {}) {
  const TempFolder streams;
  const std::string out_path = options.out_path.empty() ? streams.Path("out") : options.out_path;
  const std::string err_path = streams.Path("err");

  std::vector<std::string> words = arguments;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const std::string name = text.substr(0, text.find('='));
    if (name == "COLUMNS" || name == "STEPCAST_DATA" || name == "LANG" ||
        name.compare(0, 3, "LC_") == 0) {
      continue;
    }
    variables.push_back(text);
  }
  variables.insert(variables.end(), options.variables.begin(), options.variables.end());
  std::vector<char*> envp;
  for (std::string& variable : variables) envp.push_back(variable.data());
  envp.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out_path.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err_path.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  // The end of a pipe that a thread of the test writes is not the program's to keep open.
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  posix_spawn_file_actions_addchdir_np(&actions, options.folder.c_str());
  pid_t child = 0;
  const auto start = std::chrono::steady_clock::now();
  const int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw std::runtime_error("cannot run " + arguments.front() + ": " + std::strerror(error));
  }
  int status = 0;
  rusage usage = {};
  if (wait4(child, &status, 0, &usage) != child) throw std::runtime_error("wait4 failed");
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;

  ProcessResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (options.out_path.empty()) result.out = FileContent(out_path);
  result.err = FileContent(err_path);
  result.wall_s = wall.count();
  for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
    result.processor_s +=
        static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  }
  return result;
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_CLI_PROCESS_H_
