// Destinations of text: a file, or memory.
#pragma once

#include <string>
#include <string_view>

#include "io/text/text_buffer.hpp"

namespace attn::io {

/// Thrown if the reader of standard output has exited: not an error, only the end.
struct ClosedPipe {};

class Output {
public:
    Output() = default;
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;
    virtual ~Output() = default;

    virtual Output& operator<<(std::string_view text) = 0;
};

/// Stores the text.
class TextOutput : public Output {
public:
    TextOutput& operator<<(std::string_view text) override {
        text_ += text;
        return *this;
    }
    std::string& text() { return text_; }

private:
    std::string text_;
};

/// The same for large text.
class BufferOutput : public Output {
public:
    BufferOutput& operator<<(std::string_view text) override {
        text_ += text;
        return *this;
    }
    TextBuffer& text() { return text_; }

private:
    TextBuffer text_;
};

}  // namespace attn::io
