#include "predictor/cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

namespace stepcast::cli {
namespace {

std::optional<std::string> Variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

TerminalEnvironment CurrentEnvironment() {
  TerminalEnvironment environment;
  environment.is_terminal = isatty(STDOUT_FILENO) == 1;
  winsize size{};
  if (environment.is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    environment.columns_of_terminal = size.ws_col;
  }
  environment.no_color = Variable("NO_COLOR");
  environment.term = Variable("TERM");
  environment.columns = Variable("COLUMNS");
  environment.lc_all = Variable("LC_ALL");
  environment.lc_ctype = Variable("LC_CTYPE");
  environment.lang = Variable("LANG");
  return environment;
}

}  // namespace

Style DetectStyle() { return StyleFor(CurrentEnvironment()); }

int TerminalWidth() { return WidthFor(CurrentEnvironment()); }

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) != 0) {}

void ProgressLine::Show(double elapsed_s, const std::string& text) {
  constexpr double kQuietS = 10;
  constexpr double kRedrawS = 0.1;
  constexpr std::size_t kWidth = 78;
  if (elapsed_s - last_ < (terminal_ ? kRedrawS : kQuietS)) return;
  last_ = elapsed_s;
  const std::string line =
      terminal_ ? "\r\033[K" + text.substr(0, kWidth) : "stepcast: " + text + "\n";
  std::fputs(line.c_str(), stderr);
}

void ProgressLine::End() {
  if (terminal_ && last_ > 0) std::fputs("\r\033[K", stderr);
  last_ = 0;
}

}  // namespace stepcast::cli
