// Everything that threads share, each with one thread and with several, in one process: the bytes
// are the same, and the thread sanitizer (preset tsan) sees every step.
#include "cli/batch/batch.hpp"
#include "cli/commands.hpp"
#include "cli/output/output.hpp"
#include "cli/plot/plot.hpp"
#include "cli/question/question.hpp"
#include "core/layer/layer.hpp"
#include "io/read/result_view.hpp"
#include "tests/support/answers.hpp"
#include "tests/support/kernel_check.hpp"
#include "tests/support/requests.hpp"

namespace threads_test {
namespace {

using namespace attn;
using namespace attn::cli;
using attn::test::read_text;
using attn::test::write_text;

/// The answer to a request in a format, as main makes it.
std::string answer_of(const std::string& text, std::size_t threads, const std::string& format) {
    Request request;
    request.has_mode = false;
    request.of_batch = true;
    for (const io::OutputFormat& row : io::output_formats)
        if (row.name == format) request.format = &row;
    ThreadPool workers(threads);
    io::LoadedModels models;
    RequestWithInput asked =
        open_request(request, io::input_file_of_line(io::source_of_line("request", text, 1)));
    const PlanOptions options{.stream = streams_arrays(asked.request)};
    const Runtime runtime{workers, models};
    Answer answered = answer(read_question(std::move(asked), runtime), options, runtime);
    return test::written([&](io::Output& out) {
        write_report(out, answered.question.request,
                     make_report(answered.question.request, answered.plan,
                                 std::move(answered.result), workers));
    });
}

void answer_batch(const std::string& output, std::size_t jobs, bool resume, bool retry_failed) {
    BatchRequest batch;
    batch.program = &attn_program();
    batch.defaults.has_mode = false;
    batch.defaults.of_batch = true;
    batch.inputs = {{"requests.ndjson", false}};
    batch.jobs = jobs;
    batch.output = output;
    batch.resume = resume;
    batch.retry_failed = retry_failed;
    run_batch(batch);
}

TEST_CASE("threads: kernels give the same bits on any number, dropout included") {
    for (const DropoutStream stream : {DropoutStream::mt19937, DropoutStream::mkl})
        for (const bool head_by_head : {false, true})
            for (std::uint64_t seed = 1; seed <= 12; ++seed) {
                auto question = test::generate_question<float>(seed);
                CAPTURE(question.words);
                if (seed % 2 == 0)
                    question.call.dropout = {0.3, stream, head_by_head, question.q_len(),
                                             TorchGenerator(seed)};
                for (const kernels::Kernel* kernel : kernels::supported()) {
                    const auto alone = test::fused(*kernel, question.call, seed % 3 == 0, 1);
                    const auto several = test::fused(*kernel, question.call, seed % 3 == 0, 4);
                    CHECK(test::same_bits(alone, several));
                }
            }
}

TEST_CASE(
    "threads: answers are the same bytes on any number, and are read back and drawn by several") {
    test::make_operands(test::scratch_folder());
    std::string words;
    for (int word = 0; word < 150; ++word) words += "word" + std::to_string(word % 31) + " ";
    const std::string text = R"({"mode": "multihead", "heads": 3, "d_out": 48, "text": ")" + words +
                             R"(", "embed_dim": 40, "dropout": 0.1, "kernel": "auto", "emit": )"
                             R"(["context_vectors", "attention_weights"]})";
    for (const std::string format : {"json", "npz", "safetensors"}) {
        CAPTURE(format);
        const std::string alone = answer_of(text, 1, format);
        CHECK((answer_of(text, 4, format) == alone));
        write_text("result." + format, alone);
        const io::ResultView view(io::open_result("result." + format),
                                  io::ResultView::Scope::named);
        REQUIRE(view.arrays().size() == 2);
        ThreadPool one(1), four(4);
        for (const io::ArrayView& array : view.arrays())
            CHECK((view.read(array, one).values == view.read(array, four).values));
    }
    PlotRequest request;
    request.results = {"result.json"};
    request.scale = io::ColorScale::fixed;
    for (const char* picture : {"result.png", "result.svg", "result.html"}) {
        request.output = picture;
        plot(request);
    }
}

TEST_CASE("threads: a batch of several jobs, resumed or tried again, gives the bytes of one") {
    test::make_operands(test::scratch_folder());
    write_text("requests.ndjson", test::mixed_requests(64));
    answer_batch("whole", 1, false, false);
    const std::string whole = read_text("whole");
    answer_batch("several", 4, false, false);
    CHECK((read_text("several") == whole));
    for (const std::size_t part : {3u, 2u}) {
        write_text("resumed", whole.substr(0, whole.size() / part));
        answer_batch("resumed", 4, true, false);
        CHECK((read_text("resumed") == whole));
        answer_batch("resumed", 4, true, true);
        CHECK((read_text("resumed") == whole));
    }
}

}  // namespace
}  // namespace threads_test
