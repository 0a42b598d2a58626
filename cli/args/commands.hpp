// The commands of the program, as CLI11 reads them.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/args/command_line.hpp"
#include "cli/args/flags.hpp"
#include "cli/request/options.hpp"

namespace attn::cli {

/// One command: added to the program when it is made, read after the program is parsed.
class Command {
public:
    Command(CLI::App& program, const std::string& name, const std::string& summary);
    virtual ~Command() = default;
    Command(const Command&) = delete;
    Command& operator=(const Command&) = delete;

    const std::string& name() const { return app_.get_name(); }
    bool is_parsed() const { return app_.parsed(); }

    virtual std::string help() const = 0;

    /// What was asked for. Errors: kind usage.
    virtual CommandLine read() const = 0;

protected:
    CLI::App& app_;
};

/// True where only standard input is left to read from, and that is a keyboard.
bool waits_for_keyboard(const Request& request);

/// `attn self`, `attn causal`, ...: one question.
class ModeCommand : public Command {
public:
    /// Flags are added only where the mode is named: two hundred of them would double the start.
    ModeCommand(CLI::App& program, Mode mode, bool is_named);

    std::string help() const override;
    CommandLine read() const override;

private:
    [[noreturn]] void fail_at(const std::string& word) const;

    Mode mode_;
    CLI::Option* input_;
    OptionFlags flags_;
};

/// `attn batch`: many questions.
class BatchCommand : public Command {
public:
    BatchCommand(CLI::App& program, bool is_named);

    std::string help() const override;
    CommandLine read() const override;

private:
    void take_mode(Request& defaults) const;
    void take_inputs(std::vector<BatchInput>& inputs) const;

    OwnFlags own_;
    OptionFlags defaults_;
};

/// `attn explain MODE`: one question, told.
class ExplainCommand : public Command {
public:
    ExplainCommand(CLI::App& program, bool is_named);

    std::string help() const override;
    CommandLine read() const override;

private:
    Mode mode_of(const std::string& word) const;
    void take_words(Request& request) const;

    OwnFlags own_;
    OptionFlags flags_;
};

/// `attn plot RESULT`.
class PlotCommand : public Command {
public:
    PlotCommand(CLI::App& program, bool is_named);

    std::string help() const override;
    CommandLine read() const override;

private:
    OwnFlags own_;
};

/// `attn compare A B`.
class CompareCommand : public Command {
public:
    explicit CompareCommand(CLI::App& program);

    std::string help() const override;
    CommandLine read() const override;

private:
    double tolerance(const char* flag) const;

    OwnFlags own_;
};

}  // namespace attn::cli
