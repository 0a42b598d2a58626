// doctest's main, compiled once. Every test runs in the scratch folder.
#define DOCTEST_CONFIG_IMPLEMENT
#include "tests/support/support.hpp"

int main(int argc, char** argv) {
    attn::test::scratch_folder();
    return doctest::Context(argc, argv).run();
}
