// --token takes an index or a label in every mode, on the command line, in a request and in a
// batch, with the same answer.
#include "core/plan/settings.hpp"
#include "tests/support/answers.hpp"

namespace token_label_test {
namespace {

using namespace attn;
using namespace attn::test;
using Json = nlohmann::ordered_json;

const Words labels{"Your", " journey", "12a", "-x", "1.5", "a,b", "\xc3\xa9t\xc3\xa9"};

Json question_of(const ModeRow& mode) {
    Json rows = Json::array();
    for (std::size_t i = 0; i < labels.size(); ++i) rows.push_back({0.5 * double(i), 1.0, -0.25});
    Json question{{"mode", mode.name}, {"tokens", labels}};
    for (const char* key : {"query", "key", "value"})
        if (!mode.projects(false)) question[key] = rows;
    if (mode.projects(false)) question["inputs"] = rows;
    if (mode.projects(false) && mode.context) question["context"] = {{1, 2, 3}, {4, 5, 6}};
    return question;
}

TEST_CASE("token label: every label is its index, however it is given") {
    Sample is_taken;
    for (const ModeRow& mode : mode_rows) {
        const std::string name(mode.name);
        for (std::size_t i = 0; i < labels.size(); ++i) {
            if (!is_taken.takes()) continue;
            Json question = question_of(mode);
            write_text("q.json", question.dump());
            const std::string by_index =
                run_attn({name, "q.json", "--token", std::to_string(i)}).out;
            CHECK(Json::parse(by_index)["config"]["token"] == i);
            for (const std::string& label : {labels[i], " " + labels[i]}) {
                CAPTURE(name + " " + label);
                CHECK(run_attn({name, "q.json", "--token=" + label}).out == by_index);
                write_text("f.json", Json{{"token", label}}.dump());
                CHECK(run_attn({name, "q.json", "--config", "f.json"}).out == by_index);
                question["token"] = label;
                CHECK(run_attn({name}, question.dump()).out == by_index);
                Json answer = Json::parse(run_attn({"batch"}, question.dump()).out);
                answer.erase("id");
                answer["config"].erase("id");
                CHECK(answer == Json::parse(by_index));
                const auto headline = [&](const std::string& token) {
                    const std::string page =
                        run_attn({"explain", name, "q.json", "--token=" + token}).out;
                    return page.substr(0, page.find("\n\n", page.find("looks at")));
                };
                CHECK(headline(label) == headline(std::to_string(i)));
            }
        }
    }
}

}  // namespace
}  // namespace token_label_test
