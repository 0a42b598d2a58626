// Every fused kernel that this processor runs over the whole space of questions, generated from
// seeds, against the formula in long double.
//
// ATTN_TEST_CASES asks for more questions than the usual ones, ATTN_TEST_SEED for others.
#include "tests/support/kernel_check.hpp"

namespace kernel_class_test {
namespace {

using namespace attn;
using test::GeneratedQuestion;

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// How many rows could be checked.
template <class T>
std::size_t check_question(std::uint64_t seed) {
    const GeneratedQuestion<T> question = test::generate_question<T>(seed);
    CAPTURE(question.words);
    const test::KernelCheck check = test::check_kernels(question);
    for (const std::string& wrong : check.wrong) CHECK(wrong == "");
    return check.usable;
}

TEST_CASE_TEMPLATE("kernels, generated: every magnitude of scores and values, with every option", T,
                   float, double) {
    const std::uint64_t first = number_from_environment("ATTN_TEST_SEED", 1);
    const std::uint64_t count = number_from_environment("ATTN_TEST_CASES", test::cases(300));
    std::size_t usable = 0;
    for (std::uint64_t seed = first; seed < first + count; ++seed)
        usable += check_question<T>(seed);
    // Most rows lie where plain arithmetic works, so most of the checks are real.
    CHECK(usable > count * 20);
    MESSAGE(count << " questions from seed " << first << ", " << usable << " rows");
}

}  // namespace
}  // namespace kernel_class_test
