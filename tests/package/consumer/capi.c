// The C interface, found by CMake in a project that knows C++ as well.
#include <stepcast.h>
#include <string.h>

int main(void) {
  stepcast_cluster* cluster = NULL;
  stepcast_cluster_info info = {.struct_size = sizeof info};
  const stepcast_status status =
      stepcast_cluster_read(DATA "/machines/ufrgs-tupi.yaml", &cluster, NULL);
  if (!WITH_FILES) return status == STEPCAST_NOT_BUILT ? 0 : 1;
  if (status != STEPCAST_OK) return 1;
  stepcast_cluster_get_info(cluster, &info);
  const int same = strcmp(info.name, "ufrgs-tupi");
  stepcast_cluster_free(cluster);
  return same;
}
