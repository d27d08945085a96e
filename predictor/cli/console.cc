#include "predictor/cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

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

}  // namespace stepcast::cli
