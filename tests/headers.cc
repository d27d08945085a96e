// Nothing of its own: stands for the headers that are compiled once for all tests (CMakeLists.txt).
