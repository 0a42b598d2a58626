// Times reading and writing of numbers as text, compared with the standard library's from_chars and
// to_chars and nlohmann's parser, in turns; first checks each answer.
//
//   attn_text_bench                4096 x 768 read, 4096 x 4096 written
//   attn_text_bench --small        the same in seconds, for tests
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "io/file/output.hpp"
#include "io/file/source.hpp"
#include "io/read/csv.hpp"
#include "io/read/json_document.hpp"
#include "io/write/output_formats.hpp"

namespace {

using namespace attn;
using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& work) {
    const auto start = Clock::now();
    work();
    return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Contender {
    std::string name;
    std::function<void()> work;
    std::vector<double> seconds = {};
};

/// Medians of rounds in which each runs once, so that noise meets all alike.
void race(const std::string& what, std::vector<Contender> contenders, double bytes, double numbers,
          int rounds) {
    for (int round = 0; round < rounds; ++round)
        for (Contender& c : contenders) c.seconds.push_back(seconds_of(c.work));
    for (Contender& c : contenders) {
        std::sort(c.seconds.begin(), c.seconds.end());
        const double median = c.seconds[c.seconds.size() / 2];
        std::printf("%-26s %-20s %8.2f ms %8.0f MB/s %7.1f M numbers/s\n", what.c_str(),
                    c.name.c_str(), median * 1e3, bytes / median / 1e6, numbers / median / 1e6);
    }
    std::fflush(stdout);
}

/// How the numbers of a text are spelled.
struct Spelling {
    std::string name;
    std::function<char*(char* at, char* end, double value)> write;
};

const Spelling spellings[] = {
    {"float32 shortest",
     [](char* at, char* end, double value) {
         return std::to_chars(at, end, static_cast<float>(value)).ptr;
     }},
    {"8 decimals",
     [](char* at, char* end, double value) {
         return std::to_chars(at, end, value, std::chars_format::fixed, 8).ptr;
     }},
    {"17 digits", [](char* at, char* end, double value) {
         return std::to_chars(at, end, value, std::chars_format::scientific, 16).ptr;
     }}};

struct Matrix {
    std::string csv, json = "[";
    std::vector<double> values;  // as the standard library reads them
};

Matrix make_matrix(std::size_t rows, std::size_t columns, const Spelling& spelling) {
    Matrix matrix;
    std::mt19937 generator(1);
    std::normal_distribution<double> normal;
    for (std::size_t row = 0; row < rows; ++row) {
        std::string line;
        for (std::size_t column = 0; column < columns; ++column) {
            char text[64];
            char* const end = spelling.write(text, text + sizeof text, normal(generator));
            double value = 0;
            std::from_chars(text, end, value);
            matrix.values.push_back(value);
            line += (column == 0 ? "" : ",") + std::string(text, end);
        }
        matrix.csv += line + "\n";
        matrix.json += (row == 0 ? "[" : ",[") + line + "]";
    }
    matrix.json += "]\n";
    return matrix;
}

/// What a program does that trusts its file: no rules, no errors.
std::vector<double> read_with_from_chars(const std::string& text, std::size_t count) {
    std::vector<double> values;
    values.reserve(count);
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at != end) {
        if (*at == ',' || *at == '\n' || *at == '[' || *at == ']') {
            ++at;
            continue;
        }
        double value = 0;
        const auto [after, error] = std::from_chars(at, end, value);
        if (error != std::errc()) throw std::runtime_error("no number");
        values.push_back(value);
        at = after;
    }
    return values;
}

void require_equal(const Array<double>& got, const Matrix& matrix, const std::string& what) {
    if (got.size() != matrix.values.size() ||
        std::memcmp(got.data(), matrix.values.data(), got.size() * sizeof(double)) != 0)
        throw std::runtime_error(what + ": wrong numbers");
}

void bench_reading(std::size_t rows, std::size_t columns, int rounds) {
    ThreadPool two(2);
    for (const Spelling& spelling : spellings) {
        const Matrix matrix = make_matrix(rows, columns, spelling);
        const auto count = static_cast<double>(matrix.values.size());
        const io::Source csv = io::read_source(io::Bytes::of("matrix.csv", matrix.csv));
        const io::Source json = io::read_source(io::Bytes::of("matrix.json", matrix.json));
        const io::CsvStyle plain{io::Guess::no, io::Guess::no};
        const auto bench = [&](const std::string& what, const std::string& text, const auto& read,
                               std::vector<Contender> contenders) {
            for (ThreadPool* workers : {static_cast<ThreadPool*>(nullptr), &two})
                require_equal(read(workers), matrix, what);
            contenders.push_back(
                {"from_chars", [&] { read_with_from_chars(text, matrix.values.size()); }});
            contenders.push_back({"attn, 1 thread", [&] { read(nullptr); }});
            contenders.push_back({"attn, 2 threads", [&] { read(&two); }});
            race("read " + what + ", " + spelling.name, contenders,
                 static_cast<double>(text.size()), count, rounds);
        };
        const auto read_csv = [&](ThreadPool* workers) {
            return io::read_csv(csv, {}, plain, workers).matrix.values;
        };
        const auto read_json = [&](ThreadPool* workers) {
            return io::JsonDocument(json).read_array({}, workers).values;
        };
        bench("csv", matrix.csv, read_csv, {});
        bench("json", matrix.json, read_json,
              {{"nlohmann", [&] { const auto document = nlohmann::json::parse(matrix.json); }}});
    }
}

/// Numbers like weights.
Array<float> random_numbers(std::size_t rows, std::size_t columns) {
    Array<float> numbers = Array<float>::from_shape({rows, columns});
    std::mt19937 generator(2);
    std::normal_distribution<float> normal;
    for (float& number : numbers)
        number = std::exp(2 * normal(generator)) / static_cast<float>(columns);
    return numbers;
}

std::string text_with_to_chars(const Array<float>& numbers) {
    std::string text(numbers.size() * 17 + 16, ' ');
    char* at = text.data();
    for (float number : numbers) {
        at = std::to_chars(at, at + 16, number).ptr;
        *at++ = ',';
    }
    text.resize(static_cast<std::size_t>(at - text.data()));
    return text;
}

void write_result(const Array<float>& numbers, const std::string& path, ThreadPool* workers) {
    io::Report report;
    report.arrays = {{"numbers", numbers, {}}};
    report.workers = workers;
    io::OutputFile out(path);
    out.fill([&](io::Output& to) { io::write_json(to, report, {}); });
    out.commit();
}

void require_readable(const Array<float>& numbers, const std::string& path) {
    write_result(numbers, path, nullptr);
    const io::Source source = io::read_source(path);
    std::remove(path.c_str());
    const io::JsonDocument document(source);
    const Array<double> read = document.read_array(*document.find("numbers"), {}).values;
    if (!std::equal(read.begin(), read.end(), numbers.begin(), numbers.end(),
                    [](double a, float b) { return static_cast<float>(a) == b; }))
        throw std::runtime_error("write: wrong numbers");
}

void bench_writing(std::size_t size, int rounds) {
    ThreadPool two(2);
    const Array<float> numbers = random_numbers(size, size);
    require_readable(numbers, "attn_text_bench.json");
    const auto count = static_cast<double>(numbers.size());
    const auto bytes = static_cast<double>(text_with_to_chars(numbers).size());
    // /dev/null: the speed of files is another question.
    race("write weights",
         {{"to_chars, memory", [&] { text_with_to_chars(numbers); }},
          {"attn, 1 thread", [&] { write_result(numbers, "/dev/null", nullptr); }},
          {"attn, 2 threads", [&] { write_result(numbers, "/dev/null", &two); }},
          {"nlohmann",
           [&] {
               const nlohmann::json document = std::vector<float>(numbers.begin(), numbers.end());
               const std::string text = document.dump();
           }}},
         bytes, count, rounds);
}

}  // namespace

int main(int argc, char** argv) {
    const bool small = argc > 1 && argv[1] == std::string("--small");
    try {
        bench_reading(small ? 100 : 4096, small ? 70 : 768, small ? 1 : 9);
        bench_writing(small ? 300 : 4096, small ? 1 : 7);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "attn_text_bench: %s\n", error.what());
        return 1;
    }
}
