// The terminal that this process writes to.
#ifndef STEPCAST_PREDICTOR_CLI_CONSOLE_H_
#define STEPCAST_PREDICTOR_CLI_CONSOLE_H_

#include "predictor/report/terminal.h"

namespace stepcast::cli {

// Style and width of standard output in this environment: see StyleFor and WidthFor.
Style DetectStyle();
int TerminalWidth();

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_CONSOLE_H_
