// What a run keeps of the files of models.
#include <doctest/doctest.h>

#include <filesystem>

#include "cli/request/model_files.hpp"
#include "core/base/error.hpp"
#include "tests/support/support.hpp"

using namespace attn;

TEST_CASE("model files: the values used last are kept, up to a total size") {
    cli::Recent<int> recent(10);
    int made = 0;
    const auto get = [&](const std::string& key, std::size_t size) {
        return recent.get(
            key, [&] { return ++made; }, [&](int) { return size; });
    };
    CHECK(get("a", 4) == 1);
    CHECK(get("b", 4) == 2);
    CHECK(get("a", 4) == 1);
    CHECK(get("c", 4) == 3);  // b goes, which was used before a
    CHECK(get("a", 4) == 1);
    CHECK(get("b", 4) == 4);
    CHECK(get("large", 100) == 5);  // kept by itself
    CHECK(get("large", 100) == 5);
    CHECK(get("a", 4) == 6);
}

TEST_CASE("model files: what cannot be made is not kept") {
    cli::Recent<int> recent(10);
    const auto one = [](int) { return std::size_t{1}; };
    CHECK_THROWS_AS(recent.get(
                        "a", []() -> int { throw Error(ErrorKind::io, "a", "no"); }, one),
                    Error);
    CHECK(recent.get(
              "a", [] { return 7; }, one) == 7);
}

TEST_CASE("model files: a file is opened once, whatever becomes of its name") {
    const std::string path = test::scratch_folder() + "/weights.json";
    test::write_text(path, R"({"W_query": [[1, 2]]})");
    cli::LoadedModels files;
    const auto first = files.open(path);
    std::filesystem::remove(path);
    CHECK(files.open(path) == first);
    CHECK(first->arrays.size() == 1);
}
