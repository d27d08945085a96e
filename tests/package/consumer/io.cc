// Reads an installed file, and catches across libraries what is thrown for one that is not there.
#include <stepcast/data/io/machines.h>
#include <stepcast/data/record/input_error.h>

int main() {
  if (stepcast::ReadCluster(DATA "/machines/ufrgs-tupi.yaml").name != "ufrgs-tupi") return 1;
  try {
    stepcast::ReadCluster(DATA "/none.yaml");
  } catch (const stepcast::InputError&) {
    return 0;
  }
  return 1;
}
