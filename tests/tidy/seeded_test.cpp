#include <functional>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/tidy/rules.hpp"

using namespace foretoken::tidy;

namespace {

/// A small text with one fault, or none, and the line on which the rule must see it (0: nowhere).
struct Seed {
  std::string path;
  std::string text;
  std::size_t line;
};

void expect(const std::function<std::vector<Finding>(const Source&)>& rule, const std::vector<Seed>& seeds) {
  for (const Seed& seed : seeds) {
    const auto findings = rule(make_source(seed.path, seed.text));
    INFO(seed.path << "\n" << seed.text);
    REQUIRE(findings.size() == (seed.line == 0 ? 0 : 1));
    if (seed.line != 0) CHECK(findings[0].line == seed.line);
  }
}

std::string function_of(int lines) {
  std::string text = "void f(int a) {\n";
  for (int i = 2; i < lines; ++i) text += i % 2 == 0 ? "  if (a) {\n" : "  }\n";
  return text + "}\n";
}

}  // namespace

TEST_CASE("a forbidden include is seen", "[tidy]") {
  expect(check_includes,
         {{"sim/core/a.cpp", "#include <vector>\n#include \"sim/base/json.hpp\"\n", 2},
          {"sim/core/a.cpp", "#include \"models/cost.hpp\"\n", 1},
          {"sim/core/a.cpp", "#include \"sim/base/check.hpp\"\n#include \"sim/core/time.hpp\"\n", 0},
          {"sim/fleet/a.cpp", "#include \"sim/metrics/collector.hpp\"\n", 1},
          {"sim/sim_executor.cpp", "#include \"sim/workload/trace.hpp\"\n", 1},
          {"sim/scenario.cpp", "#include \"backend/live.hpp\"\n", 1},
          {"sim/scenario.cpp", "#include \"sim/workload/trace.hpp\"\n#include \"models/cost.hpp\"\n", 0},
          {"models/a.cpp", "#include \"sim/core/step.hpp\"\n", 1},
          {"models/a.cpp", "#include <nlohmann/json.hpp>\n", 1},
          {"kernels/cpu/a.cpp", "#include \"sim/base/check.hpp\"\n", 1},
          {"kernels/reference/a.cpp", "#include <Eigen/Dense>\n", 0},
          {"backend/a.cpp", "#include \"cli/main.hpp\"\n", 1},
          {"backend/a.cpp", "#include <CLI/CLI.hpp>\n", 1},
          {"cli/run.cpp", "#include <CLI/CLI.hpp>\n", 1},
          {"cli/main.cpp", "#include <CLI/CLI.hpp>\n", 0},
          {"sim/base/a.cpp", "#include <format>\n", 1},
          {"sim/base/a.hpp", "#include <vector>\n", 1},
          {"other/a.cpp", "int x;\n", 1}});
}

TEST_CASE("excess length is seen", "[tidy]") {
  expect(check_lengths, {{"sim/a.cpp", function_of(60), 0},
                         {"sim/a.cpp", function_of(62), 1},
                         {"sim/a.cpp", "namespace n {\nclass C {\n" + function_of(62) + "};\n}\n", 3},
                         {"sim/a.cpp", "namespace n {\n" + function_of(40) + function_of(40) + "}\n", 0},
                         {"sim/a.cpp", "C::C() : a_{1}, b_(2)\n" + function_of(62).substr(13) + "\n", 1},
                         {"kernels/cuda/a.cu", function_of(100), 0},
                         {"sim/a.cpp", std::string(111, 'x') + "\n", 1},
                         {"sim/a.cpp", "// " + std::string(107, 'x') + "\n", 0},
                         {"sim/a.cpp", "const char* s = R\"(\n{{{\n)\";\n" + function_of(20), 0},
                         {"sim/a.cpp", std::string(401, '\n'), 1}});
}

TEST_CASE("a missing sentence is seen", "[tidy]") {
  const std::string head = "#pragma once\nnamespace foretoken {\n";
  expect(check_docstrings,
         {{"sim/a.hpp", head + "int f(int a);\n}\n", 3},
          {"sim/a.hpp", head + "/// Does.\nint f(int a);\nint f(double a);\n}\n", 0},
          {"sim/a.hpp", head + "/// Does.\nint f(int a);\n\nint f(double a);\n}\n", 6},
          {"sim/a.hpp", head + "struct S {\n  int a;\n};\n}\n", 3},
          {"sim/a.hpp", head + "struct S;\n/// Is.\nstruct T {\n  int a = f(1);\n  void g();\n};\n}\n", 7},
          {"sim/a.hpp",
           head + "/// Is.\nclass C {\n public:\n  C(int a);\n  ~C();\n  int g() const;\n};\n}\n", 8},
          {"sim/a.hpp",
           head + "/// Is.\nclass C {\n  int g() const;\n public:\n  C() = default;\n private:\n  void "
                  "h();\n};\n}\n",
           0},
          {"sim/a.hpp",
           head + "/// Is.\nclass C {\n public:\n  bool g(int a) const { return a > 0; }\n};\n}\n", 6},
          {"sim/a.hpp", head + "/// Is.\nclass C : public B {\n public:\n  bool g() const override;\n};\n}\n",
           0},
          {"sim/a.hpp", head + "namespace detail {\nint f();\n}\n}\n", 0},
          {"sim/a.hpp", head + "template <class T>\nT f(T a) {\n  return a;\n}\n}\n", 3},
          {"sim/a.hpp", head + "enum class E { a, b };\n}\n", 3},
          {"sim/a.hpp", head + "constexpr int kA = 1;\nusing B = int (*)(int);\n}\n", 0},
          {"sim/a.cpp", head + "int f(int a);\n}\n", 0}});
}

TEST_CASE("a banned word is seen", "[tidy]") {
  expect(check_words, {{"sim/a.cpp", "std::normal_distribution<double> d;\n", 1},
                       {"sim/a.cpp", "int x;\nstd::shuffle(a, b, c);\n", 2},
                       {"sim/a.cpp", "int x = rand();\n", 1},
                       {"sim/a.cpp", "int x = operand(1) + grand(2);\n", 0},
                       {"sim/a.cpp", "// rand() is banned\n", 0},
                       {"sim/a.cpp", "std::random_device d;\n", 1},
                       {"sim/a.cpp", "// TODO: more\n", 1},
                       {"README.md", "see /work/main\n", 1},
                       {"README.md", "see sim/workload and /workload\n", 0},
                       {"README.md", "made by a helper session\n", 1}});
}

TEST_CASE("a giant out of its place and an overgrown core are seen", "[tidy]") {
  const auto unit = [](const std::string& path, const std::string& text) { return make_source(path, text); };
  CHECK(check_tree({unit("models/a.hpp", "#include <nlohmann/json.hpp>\n")}).size() == 1);
  CHECK(check_tree(
            {unit("cli/a.cpp", "#include <CLI/CLI.hpp>\n"), unit("cli/b.cpp", "#include <CLI/App.hpp>\n")})
            .size() == 1);
  std::vector<Source> many;
  for (int i = 0; i < 6; ++i) many.push_back(unit("models/a.cpp", "#include <nlohmann/json.hpp>\n"));
  CHECK(check_tree(many).size() == 1);
  many.pop_back();
  CHECK(check_tree(many).empty());
  std::string core;
  for (int i = 0; i < 2501; ++i) core += "x;\n";
  CHECK(check_tree({unit("sim/core/a.cpp", core)}).size() == 1);
  CHECK(check_tree({unit("sim/core/a.cpp", std::string(5000, '\n'))}).empty());
}

TEST_CASE("a path that leads nowhere is seen", "[tidy]") {
  const std::vector<Source> files{make_source("sim/core/engine.hpp", "")};
  const auto rule = [&](const Source& page) { return check_paths(page, files); };
  expect(rule, {{"README.md", "`sim/core/engine.hpp`, `sim/core`, `sim/core/` and `sim/core/engine`\n", 0},
                {"README.md", "x\n`sim/core/gone.hpp`\n", 2}});
}
