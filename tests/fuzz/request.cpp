// Requests, command lines, files of flags and models' settings, up to the answer. What is asked
// for stays small: a question may rightly take all of a machine.
#include "cli/request/request.hpp"
#include "cli/args/args.hpp"
#include "cli/commands.hpp"
#include "cli/output/output.hpp"
#include "cli/question/question.hpp"
#include "cli/request/field.hpp"
#include "cli/request/request_builder.hpp"
#include "core/layer/layer.hpp"
#include "io/read/json_document.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace attn::fuzz {
namespace {

using nlohmann::json;
using namespace attn::cli;

/// The question is too large to be asked here.
struct TooLarge {};

void refuse_large(const Request& request) {
    const Settings& s = request.settings;
    const auto refuse = [](const std::optional<std::uint64_t>& size, std::uint64_t most) {
        if (size.value_or(0) > most) throw TooLarge();
    };
    for (const auto& size : {s.d_out, s.d_k, s.d_v, s.heads, s.kv_heads, request.embed_dim})
        refuse(size, 64);
    for (const std::uint64_t size : s.drawn_shape()) refuse(size, 64);
    refuse(request.threads, 4);
}

void refuse_costly(const Cost& cost) {
    if (cost.flops > 1e7 || cost.memory > 1e7 || cost.numbers > 100000) throw TooLarge();
}

/// Names of other folders, which lead to devices and whatever else the machine has.
bool leads_away(std::string_view text) {
    return text.find_first_of("/\\") != std::string_view::npos;
}

/// The files that seeds name, in the folder of the process.
void make_files() {
    static const bool are_made = [] {
        namespace fs = std::filesystem;
        for (const char* name : {"journey.csv", "journey_result.json", "requests.ndjson"})
            fs::copy(test::data_path(name), test::scratch_folder() + "/" + name);
        for (const auto& model : fs::directory_iterator(test::data_path("models")))
            fs::copy(model.path(), test::scratch_folder() / model.path().filename(),
                     fs::copy_options::recursive);
        return true;
    }();
    static_cast<void>(are_made);
}

/// The answer as JSON; empty where it would be too large.
std::string answer_of(RequestWithInput asked, const PlanOptions& options) {
    ThreadPool workers(1);
    io::LoadedModels models;
    const Runtime runtime{workers, models};
    try {
        refuse_large(asked.request);
        PlannedQuestion planned = plan_question(read_question(std::move(asked), runtime), options);
        refuse_costly(planned.cost);
        Answer answered = answer(std::move(planned), runtime);
        return test::written([&](io::Output& out) {
            write_report(out, answered.question.request,
                         make_report(answered.question.request, answered.plan,
                                     std::move(answered.result), workers));
        });
    } catch (const TooLarge&) {
        return {};
    }
}

std::string answer_document(const std::string& text) {
    Request request;
    request.of_batch = true;
    request.has_mode = false;
    return answer_of(
        open_request(request, io::input_file_of_line(io::source_of_line("request", text, 1))), {});
}

/// The config of an answer with the operands of its request: the same question.
std::string asked_again(const std::string& text, const std::string& answer) {
    const io::Source source = test::make_source("request", text);
    const io::JsonDocument document(source);
    const json config = json::parse(answer).at("config");
    std::string again = config.dump();
    for (const io::JsonMember& member : document.members()) {
        static const std::set<std::string> operands{"inputs",     "query",     "key",
                                                    "value",      "context",   "past_key",
                                                    "past_value", "mask",      "key_padding_mask",
                                                    "weights",    "token_ids", "example",
                                                    "text"};
        if (!operands.contains(member.key) || config.contains(member.key)) continue;
        again.back() = ',';
        ((again += json(member.key).dump()) += ':') += document.text(member);
        again += '}';
    }
    return again;
}

Args parsed(const std::vector<std::string>& words) {
    std::vector<const char*> argv{"attn"};
    for (const std::string& word : words) argv.push_back(word.c_str());
    return parse(static_cast<int>(argv.size()), argv.data(), attn_program());
}

/// The bytes as words, one per line. A word cannot hold a zero byte.
std::vector<std::string> words_of(std::string_view bytes) {
    std::vector<std::string> words;
    std::istringstream lines{std::string(bytes)};
    for (std::string word; std::getline(lines, word);) words.emplace_back(word.c_str());
    return words;
}

/// A mode's request as its config; nothing where its flags are an error.
std::optional<std::string> config_asked_by(const std::vector<std::string>& words) {
    std::optional<std::string> config;
    error_of([&] { config = config_of(make_request(parsed(words))); });
    return config;
}

/// The flags of a command line as a file of flags ask for the same.
void require_same_as_file(const Args& args) {
    json flags = json::object();
    std::vector<std::string> from_line{std::string(args.command->name)};
    for (const FlagValue& given : args.flags) {
        if (given.origin != Origin::command_line) return;
        if (given.text.find('\0') != std::string::npos) return;  // given twice, as no word gives it
        const std::string flag = flag_of(*given.option);
        if (is_boolean(*given.option)) {
            flags[given.option->key] = given.text == "true";
            from_line.push_back(given.text == "true" ? flag : "--no-" + flag.substr(2));
        } else {
            const json value = value_of(*given.option, given.text);
            if (value.is_string() && io::find_invalid_utf8(given.text) != std::string::npos) return;
            // JSON has no such numbers.
            if (value.is_number_float() && !std::isfinite(value.get<double>())) return;
            flags[given.option->key] = value;
            from_line.push_back(flag + "=" + given.text);
        }
    }
    const std::string path = "flags.json";
    test::write_text(path, flags.dump());
    const auto line = config_asked_by(from_line);
    const auto file = config_asked_by({std::string(args.command->name), "--config", path});
    require(line.has_value() == file.has_value(), "a file of flags is refused as the flags are");
    require(line == file,
            "a file of flags is the flags: " + line.value_or("") + " and " + file.value_or(""));
}

}  // namespace

void answer_request(std::string_view bytes) {
    if (leads_away(bytes)) return;
    make_files();
    error_of([&] {
        const std::string text(bytes);
        const std::string answer = answer_document(text);
        if (answer.empty()) return;
        const json document = json::parse(answer, nullptr, false);
        require(!document.is_discarded(), "an answer is JSON: " + answer);
        std::string again;
        const std::string question = asked_again(text, answer);
        const std::string error = error_of([&] { again = answer_document(question); });
        require(error.empty(), "config is a request: " + question + " says " + error);
        require(again.empty() || again == answer,
                "config is the same request: " + question + " gives " + again);
    });
}

void read_model_config(std::string_view bytes) {
    static constexpr const char* models[] = {"gpt2", "llama", "mistral", "qwen2", "bert", "neox"};
    make_files();
    Draw draw(bytes);
    const std::string model = draw.among(models);
    const bool by_ids = draw.flag();
    test::write_text(model + "/config.json", std::string(draw.rest()));
    error_of([&] {
        answer_document(R"({"mode": "multihead", "weights": ")" + model + "\", " +
                        (by_ids ? R"("token_ids": [3, 1, 4]})" : R"("inputs": "hidden.csv"})"));
    });
}

void parse_argv(std::string_view bytes) {
    if (leads_away(bytes)) return;
    make_files();
    const PipedInput input("[[0.5, 1, 2], [3, -4, 5]]");
    const Silence silence;
    error_of([&] {
        const Args args = parsed(words_of(bytes));
        if (!args.message.empty()) return;
        if (args.command->mode != nullptr) {
            require_same_as_file(args);
            RequestWithInput asked = open_request(make_request(args));
            const auto computed = plan_output(asked.request);
            answer_of(std::move(asked), {.emit = computed});
        } else if (args.command->name != "batch" && args.command->name != "explain") {
            args.command->run(args);  // those two compute
        }
    });
}

void parse_flag_file(std::string_view bytes) {
    if (leads_away(bytes)) return;
    make_files();
    Draw draw(bytes);
    const CommandRow& command = *draw.among(attn_program().commands);
    test::write_text("flags.json", std::string(draw.rest()));
    error_of([&] {
        const Args args = parsed({std::string(command.name), "--config", "flags.json"});
        std::set<std::string> keys;
        for (const FlagValue& given : args.flags)
            require(keys.insert(given.option->key).second, "a flag is given once");
        if (command.mode != nullptr) config_of(make_request(args));
    });
}

}  // namespace attn::fuzz
