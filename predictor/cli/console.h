// The terminal that this process writes to.
#ifndef STEPCAST_PREDICTOR_CLI_CONSOLE_H_
#define STEPCAST_PREDICTOR_CLI_CONSOLE_H_

#include <string>

#include "predictor/report/terminal.h"

namespace stepcast::cli {

// Style and width of standard output in this environment: see StyleFor and WidthFor.
Style DetectStyle();
int TerminalWidth();

// How far a long command is, on standard error: a line that is overwritten on a terminal, and now
// and then a line elsewhere.
class ProgressLine {
 public:
  ProgressLine();
  // Nothing of it stays, whatever comes next.
  ~ProgressLine() { End(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(double elapsed_s, const std::string& text);
  void End();

 private:
  bool terminal_;
  double last_ = 0;
};

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_CONSOLE_H_
