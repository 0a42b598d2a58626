// What a run keeps of the files of models.
#include <atomic>
#include <chrono>
#include <thread>

#include "io/model/loaded_models.hpp"
#include "tests/support/support.hpp"

namespace loaded_models_test {
namespace {

using namespace attn;

/// A value of the given size.
struct Sized {
    int number;
    std::size_t size;
};
std::size_t size_of(const Sized& value) {
    return value.size;
}
std::size_t ten() {
    return 10;
}

/// Waits for another thread, but not for ever: where it does not come, the test fails.
bool wait_for(const std::atomic<bool>& flag) {
    constexpr int most_waits = 10000;
    for (int i = 0; i < most_waits && !flag; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return flag;
}

TEST_CASE("model files: the values used last are kept, up to a total size") {
    Recent<std::string, Sized> recent(ten, size_of);
    int made = 0;
    const auto get = [&](const std::string& key, std::size_t size) {
        return recent.get(key, [&] { return Sized{++made, size}; }).number;
    };
    CHECK(get("a", 4) == 1);
    CHECK(get("b", 4) == 2);
    CHECK(get("a", 4) == 1);
    CHECK(get("c", 4) == 3);  // b goes, which was used before a
    CHECK(get("a", 4) == 1);
    CHECK(get("b", 4) == 4);
    CHECK(get("large", 100) == 5);  // kept alone
    CHECK(get("large", 100) == 5);
    CHECK(get("a", 4) == 6);
}

TEST_CASE("model files: what cannot be made is not kept, and is tried again") {
    Recent<std::string, Sized> recent(ten, size_of);
    const auto fail = []() -> Sized { throw Error(ErrorKind::io, "a", "no"); };
    CHECK_THROWS_AS(recent.get("a", fail), Error);
    CHECK_THROWS_AS(recent.get("a", fail), Error);
    CHECK(recent.get("a", [] { return Sized{7, 1}; }).number == 7);
    CHECK(recent.get("a", fail).number == 7);
}

TEST_CASE("model files: a value that takes long stops nobody who wants another") {
    Recent<std::string, Sized> recent(ten, size_of);
    std::atomic<bool> has_begun = false, other_is_there = false;
    bool other_came = false;
    std::thread slow([&] {
        recent.get("slow", [&] {
            has_begun = true;
            other_came = wait_for(other_is_there);
            return Sized{1, 1};
        });
    });
    CHECK(wait_for(has_begun));
    CHECK(recent.get("quick", [] { return Sized{2, 1}; }).number == 2);
    other_is_there = true;
    slow.join();
    CHECK(other_came);
    CHECK(recent.get("slow", [] { return Sized{3, 1}; }).number == 1);
}

TEST_CASE(
    "model files: who wants the same value waits for it, and tries by itself after an error") {
    for (const bool fails : {false, true}) {
        Recent<std::string, Sized> recent(ten, size_of);
        std::atomic<bool> has_begun = false, second_wants = false;
        std::atomic<int> made = 0;
        std::thread first([&] {
            const auto make = [&]() -> Sized {
                has_begun = true;
                wait_for(second_wants);
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
                ++made;
                if (fails) throw Error(ErrorKind::io, "a", "no");
                return {1, 1};
            };
            if (fails)
                CHECK_THROWS_AS(recent.get("a", make), Error);
            else
                CHECK(recent.get("a", make).number == 1);
        });
        CHECK(wait_for(has_begun));
        second_wants = true;
        const Sized second = recent.get("a", [&] { return Sized{made += 1, 1}; });
        first.join();
        CHECK(second.number == (fails ? 2 : 1));
        CHECK(made == (fails ? 2 : 1));
    }
}

TEST_CASE("model files: a file is opened once, whatever becomes of its name") {
    const std::string path = test::scratch_folder() + "/weights.json";
    test::write_text(path, R"({"W_query": [[1, 2]]})");
    io::LoadedModels files;
    const auto first = files.open(path);
    std::filesystem::remove(path);
    CHECK(files.open(path) == first);
    CHECK(first->arrays.size() == 1);
}

}  // namespace
}  // namespace loaded_models_test
