// Going on with a batch whose records repeat ids or are on other lines: the same bytes as without a
// break, or a refusal, and never another record's answer.
#include "tests/support/answers.hpp"

namespace batch_ids_test {
namespace {

using namespace attn::test;

const std::string answers = "out.ndjson";

/// One line of requests; its content gives an answer that no other line has.
struct TestRecord {
    enum class Form { blank, request, matrix, unreadable, real_id };
    Form form = Form::request;
    std::string written_id;  ///< empty: none
    std::string id;          ///< as its answer shows it; empty: the default
    bool fails = false;
    std::size_t content = 0;
};

using Form = TestRecord::Form;

struct Spelling {
    const char *written, *id;
};

/// Ids that are equal, look equal, or are the default of another line.
constexpr Spelling spellings[]{
    {"1", "1"},
    {"2", "2"},
    {"3", "3"},
    {"5", "5"},
    {"0", "0"},
    {"-0", "0"},
    {"-2", "-2"},
    {"\"3\"", "\"3\""},
    {"\"a\"", "\"a\""},
    {"\"\\u0061\"", "\"a\""},
    {"\"1.ndjson:2\"", "\"1.ndjson:2\""},
};

class Cases : public Dice {
public:
    using Dice::Dice;

    std::vector<TestRecord> records() {
        std::vector<TestRecord> records(2 + below(9));
        const bool may_repeat = chance(85);
        std::size_t next = 20;
        for (TestRecord& record : records) {
            record.content = ++contents_;
            constexpr Form forms[]{Form::request, Form::request, Form::request,    Form::request,
                                   Form::matrix,  Form::blank,   Form::unreadable, Form::real_id};
            record.form = forms[below(std::size(forms))];
            record.fails = record.form == Form::unreadable || record.form == Form::real_id ||
                           (record.form == Form::request && chance(35));
            if (record.form != Form::request || chance(20)) continue;
            if (may_repeat && chance(80)) {
                const Spelling& spelling = spellings[below(std::size(spellings))];
                record.written_id = spelling.written;
                record.id = spelling.id;
            } else {
                set_new_id(record, next);
            }
        }
        return records;
    }

    static void set_new_id(TestRecord& record, std::size_t& next) {
        record.written_id = record.id = std::to_string(next++);
    }

    /// One line more, or one less.
    void move_lines(std::vector<TestRecord>& records) {
        const auto place = records.begin() + static_cast<std::ptrdiff_t>(below(records.size()));
        if (chance(50)) {
            records.erase(place);
            return;
        }
        TestRecord added;
        if (chance(20)) added.form = Form::blank;
        added.content = 1000;
        records.insert(place, added);
    }

private:
    std::size_t contents_ = 0;
};

std::string text_of(const TestRecord& record) {
    const std::string input = "[[" + std::to_string(record.content) + "]]";
    const std::string id = record.form == Form::real_id ? "2.5" : record.written_id;
    switch (record.form) {
        case Form::blank: return "\n";
        case Form::matrix: return input + "\n";
        case Form::unreadable: return "broken " + input + "\n";
        default: break;
    }
    return "{" + (id.empty() ? "" : "\"id\": " + id + ", ") +
           "\"inputs\": " + (record.fails ? "\"no\"" : input) + "}\n";
}

/// Files of requests and which records a run answers.
struct Batch {
    std::vector<TestRecord> records;
    std::size_t first_lines = 0;  ///< in 0.ndjson, the others in 1.ndjson; 0: one file
    std::size_t shard = 1, shards = 1;

    bool is_piped = false;

    void write() const {
        std::string texts[2];
        for (std::size_t i = 0; i < records.size(); ++i)
            texts[i >= first_lines && first_lines != 0] += text_of(records[i]);
        write_text("0.ndjson", texts[0]);
        if (first_lines != 0) write_text("1.ndjson", texts[1]);
    }

    std::string place(std::size_t i) const {
        const bool second = first_lines != 0 && i >= first_lines;
        return std::string(is_piped ? "<stdin>"
                           : second ? "1.ndjson"
                                    : "0.ndjson") +
               ":" + std::to_string(second ? i - first_lines + 1 : i + 1);
    }

    std::string id(std::size_t i) const {
        if (!records[i].id.empty()) return records[i].id;
        return first_lines == 0 ? std::to_string(i + 1) : "\"" + place(i) + "\"";
    }

    /// Indices of the records that this shard answers.
    std::vector<std::size_t> answered() const {
        std::vector<std::size_t> indices;
        std::size_t number = 0;
        for (std::size_t i = 0; i < records.size(); ++i)
            if (records[i].form != Form::blank && number++ % shards == shard - 1)
                indices.push_back(i);
        return indices;
    }

    /// The first record whose id an earlier one has, and that one; equal where there is none.
    std::pair<std::size_t, std::size_t> repetition() const {
        std::map<std::string, std::size_t> earlier;
        for (std::size_t i : answered())
            if (const auto [found, is_new] = earlier.emplace(id(i), i); !is_new)
                return {i, found->second};
        return {0, 0};
    }

    Outcome run(Words more) const {
        write();
        Words words = words_in("batch --mode self --emit scores --d-out 1");
        words.emplace_back(is_piped ? "-" : "0.ndjson");
        if (first_lines != 0) words.emplace_back("1.ndjson");
        if (shards > 1)
            words = with(words, {"--shard", std::to_string(shard) + "/" + std::to_string(shards)});
        return run_attn(words + more, is_piped ? read_text("0.ndjson") : "");
    }
};

struct Count {
    std::size_t completed = 0, refused = 0;
};

/// Goes on with answers that begin so.
Outcome resumed(const Batch& batch, const std::string& start, bool retry) {
    write_text(answers, start);
    Words more{"--resume", answers};
    if (retry) more.emplace_back("--retry-failed");
    return batch.run(more);
}

/// One way to go on: the whole answers, or a refusal that leaves the file as it was.
void check_resumed(const Batch& batch, const std::string& start, const std::string& whole,
                   bool retry, bool must_complete, Count& count) {
    const Outcome outcome = resumed(batch, start, retry);
    const std::string left = read_text(answers);
    CAPTURE(outcome.err);
    CAPTURE(start);
    CAPTURE(left);
    REQUIRE(outcome.out == "");
    const auto [second, first] = batch.repetition();
    if (outcome.code != 3) {
        REQUIRE(second == first);
        REQUIRE(left == whole);
        REQUIRE(outcome.code == (!contains(whole, "\"error\":{") ? 0 : 1));
        ++count.completed;
        return;
    }
    ++count.refused;
    REQUIRE(!(must_complete && second == first));
    // Through a pipe the answers before the repeated id may be there already.
    const bool may_grow = batch.is_piped && !retry;
    REQUIRE((left == start || (may_grow && whole.starts_with(left))));
    REQUIRE(lines_of(outcome.err).size() == 1);
    if (second == first) return;
    REQUIRE(outcome.err.starts_with("attn: error: " + batch.place(second) + ": "));
    REQUIRE(contains(outcome.err, " " + batch.place(first) + ";"));
    REQUIRE(contains(outcome.err, "id " + batch.id(second)));
}

/// Lines of `batch` are not where they were when `start` was written: no record gets the answer of
/// another one.
void check_moved(const Batch& batch, const std::string& start, bool retry, Count& count) {
    const Outcome outcome = resumed(batch, start, retry);
    CAPTURE(outcome.err);
    CAPTURE(start);
    if (outcome.code == 3) {
        ++count.refused;
        REQUIRE(read_text(answers) == start);
        return;
    }
    ++count.completed;
    const Words found = lines_of(read_text(answers)), fresh = lines_of(batch.run({}).out);
    REQUIRE(found.size() == fresh.size());
    for (std::size_t line = 0; line < found.size(); ++line)
        if (!found[line].starts_with("{\"id\":")) CHECK(found[line] == fresh[line]);
}

/// What a person does: mends what failed, and where ids repeat gives all but one of them new ones,
/// mostly. Whether records whose ids could be read have them still.
bool mend(Batch& batch, Cases& cases) {
    bool same_ids = true;
    std::size_t next = 50;
    std::map<std::string, std::vector<std::size_t>> by_id;
    for (std::size_t i : batch.answered()) by_id[batch.id(i)].push_back(i);
    for (auto& [id, indices] : by_id) {
        const std::size_t keeper = indices[cases.below(indices.size())];
        for (std::size_t i : indices) {
            TestRecord& record = batch.records[i];
            const bool had_none = record.form == Form::unreadable || record.form == Form::real_id;
            const bool changes = i != keeper && record.form != Form::matrix && cases.chance(85);
            if (changes && !had_none) same_ids = false;
            record.fails = record.fails && cases.chance(20) && !had_none;
            if (had_none) record.form = Form::request;
            if (changes || (had_none && cases.chance(50))) Cases::set_new_id(record, next);
        }
    }
    return same_ids;
}

TEST_CASE("batch: going on with generated ids gives the whole answers, or refuses repeated ids") {
    Count gone_on, retried, moved;
    for (unsigned seed = 0; seed < cases(120); ++seed) {
        CAPTURE(seed);
        Cases cases(seed);
        Batch batch{.records = cases.records(), .shards = 1 + cases.below(3)};
        batch.shard = 1 + cases.below(batch.shards);
        if (cases.chance(30)) batch.first_lines = 1 + cases.below(batch.records.size() - 1);
        batch.is_piped = batch.first_lines == 0 && cases.chance(25);
        const std::string whole = batch.run({}).out;
        const Words lines = lines_of(whole);
        REQUIRE(lines.size() == batch.answered().size());
        for (std::size_t k = 0; k < lines.size(); ++k)
            REQUIRE(nlohmann::json::parse(lines[k])["id"].dump() == batch.id(batch.answered()[k]));

        for (int i = 0; i < 2; ++i)
            check_resumed(batch,
                          whole.substr(0, cases.below(whole.size() + 1)) +
                              std::string(cases.chance(30) ? 5000 : 0, '\0'),
                          whole, false, true, gone_on);
        check_resumed(batch, whole, whole, true, true, retried);
        if (batch.first_lines == 0 && !batch.is_piped) {
            Cases moves(1000 + seed);
            Batch other = batch;
            moves.move_lines(other.records);
            std::string start;
            for (std::size_t i = 0, count = moves.below(lines.size() + 1); i < count; ++i)
                start += lines[i] + "\n";
            check_moved(other, start, moves.chance(50), moved);
        }
        Batch mended = batch;
        const bool same_ids = mend(mended, cases);
        const std::string expected = mended.run({}).out;
        for (int i = 0; i < 2; ++i) {
            const std::size_t cut = i == 0 ? whole.size() : cases.below(whole.size() + 1);
            const bool is_torn = cut != 0 && cut != whole.size() && whole[cut - 1] != '\n';
            check_resumed(mended, whole.substr(0, cut), expected, true, same_ids && !is_torn,
                          retried);
        }
    }
    if (one_in > 1) return;  // too few cases to count
    // Each outcome is met often, so that neither is what everything gives.
    CHECK(gone_on.completed > 45);
    CHECK(gone_on.refused > 15);
    CHECK(retried.completed > 45);
    CHECK(retried.refused > 15);
    CHECK(moved.completed > 10);
    CHECK(moved.refused > 10);
}

TEST_CASE("batch: --resume refuses what is not its own, a last line among it, and keeps it") {
    // Good, failed, with a string for an id, without an id, bare.
    const std::string records =
        "{\"id\": 7, \"mode\": \"self\", \"inputs\": [[1]], \"emit\": [\"scores\"]}\nbroken\n"
        "{\"id\": \"a\\\"b\", \"mode\": \"self\", \"inputs\": \"no\"}\n"
        "{\"mode\": \"self\", \"inputs\": [[2]], \"emit\": [\"scores\"]}\n"
        "{\"id\": 5, \"bare\": true, \"mode\": \"self\", \"inputs\": [[2]]}\n";
    write_text("r.ndjson", records);
    const std::string whole = run_attn({"batch", "r.ndjson"}).out;
    const auto check_refused = [](const std::string& text) {
        CAPTURE(text.substr(0, 200));
        for (const Words& more : {Words{}, Words{"--retry-failed"}}) {
            write_text(answers, text);
            const Outcome outcome =
                run_attn(Words{"batch", "r.ndjson", "--resume", answers} + more);
            CHECK(outcome.code == 3);
            CHECK(outcome.err.starts_with("attn: error: " + answers + ":"));
            CHECK(lines_of(outcome.err).size() == 1);
            REQUIRE(read_text(answers) == text);
        }
    };
    std::string before;
    for (const std::string& next : lines_of(whole) + Words{""}) {
        for (const std::string& torn :
             Words{R"({"id":3,"inputs":[[1]]})", R"({"id": 7, "mode": "self"})",
                   R"({"id":99,"error":{"kind":"usage")", R"({"id":5,"mode":"self","inputs)",
                   R"({"id":5,"scores":{)", R"({"id":"a","error":{"kind":"usage")",
                   R"({"schema":"attn.result/1","id":99,"mode")",
                   R"({"schema":"attn.weights/1","config)", R"({"schema":"attn.cost/1","id":7)",
                   R"({"schema":"attn.result/2")", "[[1, 2]]", std::string("\0\0precious", 10),
                   "{\"id\":7\r"})
            check_refused(before + torn);
        before += next + "\n";
    }
    std::string windows;
    for (const std::string& line : lines_of(whole)) windows += line + "\r\n";
    for (const std::string& text :
         {windows, "\xef\xbb\xbf" + whole, " " + whole, "\n" + whole, records, whole + whole,
          run_attn({"batch", "r.ndjson", "--seed", "1"}).out,
          run_attn({"batch", "r.ndjson", "--dry-run"}).out})
        check_refused(text);
}

}  // namespace
}  // namespace batch_ids_test
