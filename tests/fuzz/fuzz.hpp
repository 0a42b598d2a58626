// Fuzz targets: functions that take any bytes. An attn::Error is a good end; any other exception, a
// crash, a leak, a hang and too much memory are findings.
#pragma once

#include <span>

#include "tests/support/support.hpp"

namespace attn::fuzz {

struct Target {
    std::string_view name;
    void (*run)(std::string_view bytes);
    std::vector<std::string> (*seeds)();  ///< bytes to begin with
    std::vector<std::string> (*words)();  ///< that mutations put in: libFuzzer's dictionary
    std::size_t longest;                  ///< bytes of an input
};

std::span<const Target> all_targets();

/// A truth that does not hold.
struct Finding : std::logic_error {
    using std::logic_error::logic_error;
};

inline void require(bool holds, const std::string& truth) {
    if (!holds) throw Finding(truth);
}

/// "where: what" of the error that ends `action`; empty where none does.
template <class Action>
std::string error_of(const Action& action) {
    try {
        action();
    } catch (const Error& error) {
        require(*error.what() != '\0', "an error says what is wrong");
        return error.location() + ": " + error.what();
    }
    return {};
}

/// Choices and numbers made of bytes, zeros where there are no more: what a target builds its
/// question from. Small changes of the bytes are small changes of the question.
class Draw {
public:
    explicit Draw(std::string_view bytes) : left_(bytes) {}

    std::string_view rest() const { return left_; }

    template <class T>
    T bits() {
        T value{};
        const std::size_t size = left_.size() < sizeof value ? left_.size() : sizeof value;
        std::memcpy(&value, left_.data(), size);
        left_.remove_prefix(size);
        return value;
    }
    /// From `least` to `most`, which are less than 65536 apart.
    std::size_t size(std::size_t least, std::size_t most) {
        const std::size_t choices = most - least + 1;
        return least + (choices <= 256 ? bits<std::uint8_t>() : bits<std::uint16_t>()) % choices;
    }
    bool flag() { return (bits<std::uint8_t>() & 1) != 0; }
    template <class List>
    const auto& among(const List& list) {
        return *(std::begin(list) + static_cast<std::ptrdiff_t>(size(0, std::size(list) - 1)));
    }

private:
    std::string_view left_;
};

/// Standard input while it lives: a pipe that holds these bytes, 16 KiB at most.
class PipedInput {
public:
    explicit PipedInput(std::string_view bytes);
    PipedInput(const PipedInput&) = delete;
    PipedInput& operator=(const PipedInput&) = delete;
    ~PipedInput();

private:
    int before_;
};

/// What is written to standard output while it lives is thrown away. Sanitizers write to the other.
class Silence {
public:
    Silence();
    Silence(const Silence&) = delete;
    Silence& operator=(const Silence&) = delete;
    ~Silence();

private:
    int before_;
};

/// The bytes as a file of this name in the scratch folder; gives its path.
std::string file_of(std::string_view bytes, const std::string& name);

/// Files of data and of tests with one of these suffixes, none longer than `longest`.
std::vector<std::string> files_with(std::span<const std::string_view> suffixes,
                                    std::size_t longest);

// One file each.
void read_json(std::string_view bytes);
void read_csv(std::string_view bytes);
void read_ndjson(std::string_view bytes);
void read_npy(std::string_view bytes);
void read_npz(std::string_view bytes);
void read_safetensors(std::string_view bytes);
void read_gguf(std::string_view bytes);
void read_torch(std::string_view bytes);
void read_flax(std::string_view bytes);
void read_tensor_proto(std::string_view bytes);
void read_c(std::string_view bytes);
void read_memh_words(std::string_view bytes);
void read_printed(std::string_view bytes);
void read_quantised(std::string_view bytes);
void read_zip(std::string_view bytes);
void read_decimal(std::string_view bytes);
void read_utf8(std::string_view bytes);
void split_words(std::string_view bytes);
void answer_request(std::string_view bytes);
void read_model_config(std::string_view bytes);
void parse_argv(std::string_view bytes);
void parse_flag_file(std::string_view bytes);
void compute_operator(std::string_view bytes);
void resume_batch(std::string_view bytes);
void look_at_result(std::string_view bytes);
void use_tokenizer(std::string_view bytes);
void run_model_of_config(std::string_view bytes);
std::vector<std::string> model_seeds();

}  // namespace attn::fuzz
