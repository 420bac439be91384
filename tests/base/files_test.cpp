#include "sim/base/files.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/resources.hpp"
#include "sim/base/version.hpp"
#include "tests/catch.hpp"

using namespace foretoken;
namespace fs = std::filesystem;

namespace {

/// A folder that goes away with the test.
struct Folder {
  Folder() : path(fs::temp_directory_path() / ("foretoken-files-" + std::to_string(::getpid()))) {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& name) const { return (path / name).string(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
  fs::path path;
};

template <class Error>
std::string fault(const std::function<void()>& action) {
  try {
    action();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::vector<std::string> lines_of(const std::string& path) {
  LineReader reader(path);
  std::vector<std::string> lines;
  std::string_view line;
  while (reader.next(line)) lines.emplace_back(line);
  return lines;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("what is written is read, plain and packed", "[unit]") {
  const Folder folder;
  std::string content;
  for (int i = 0; i < 200000; ++i) content += std::to_string(i) + "\n";
  for (const char* name : {"a.txt", "a.txt.gz"}) {
    write_file(folder.file(name), content);
    CHECK(read_file(folder.file(name)) == content);
    CHECK(lines_of(folder.file(name)).size() == 200000);
  }
  CHECK(fs::file_size(folder.path / "a.txt.gz") < content.size() / 2);
  CHECK(folder.entries() == 2);
  write_file(folder.file("b.gz"), content);
  write_file(folder.file("c.gz"), content);
  CHECK(sha256(read_file(folder.file("b.gz"))) == sha256(read_file(folder.file("c.gz"))));
}

TEST_CASE("lines end in either way and the last needs no end", "[unit]") {
  const Folder folder;
  write_file(folder.file("l"), "a\r\n\nb\r\nlast");
  CHECK(lines_of(folder.file("l")) == std::vector<std::string>{"a", "", "b", "last"});
  write_file(folder.file("l"), "");
  CHECK(lines_of(folder.file("l")).empty());
  LineReader reader(folder.file("l"));
  CHECK(reader.line() == 0);
}

TEST_CASE("a long line grows the buffer and too long a line is refused", "[unit]") {
  const Folder folder;
  write_file(folder.file("l"), std::string(3'000'000, 'x') + "\ny\n");
  const auto lines = lines_of(folder.file("l"));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].size() == 3'000'000);
  CHECK(lines[1] == "y");
  write_file(folder.file("huge.gz"), "ok\n" + std::string(std::size_t{65} << 20, 'x'));
  CHECK(contains(fault<InputError>([&] { lines_of(folder.file("huge.gz")); }),
                 "huge.gz:2: expected lines of at most"));
}

TEST_CASE("NUL bytes are refused with their line", "[unit]") {
  const Folder folder;
  write_file(folder.file("n"), std::string_view("a\nb\0c\n", 6));
  CHECK(contains(fault<InputError>([&] { lines_of(folder.file("n")); }),
                 "n:2: expected text, found a NUL byte"));
}

TEST_CASE("unreadable paths are refused by name and reason", "[unit]") {
  const Folder folder;
  const std::string missing = folder.file("missing");
  CHECK(fault<InputError>([&] { read_file(missing); }) ==
        missing + ": cannot read: No such file or directory");
  CHECK(contains(fault<InputError>([&] { LineReader reader(missing); }), "No such file"));
  CHECK(contains(fault<InputError>([&] { read_file(folder.path.string()); }), "it is a directory"));
  write_file(folder.file("closed"), "x");
  fs::permissions(folder.path / "closed", fs::perms::none);
  if (::geteuid() != 0)
    CHECK(contains(fault<InputError>([&] { read_file(folder.file("closed")); }), "Permission"));
}

TEST_CASE("truncated and damaged gzip is refused", "[unit]") {
  const Folder folder;
  std::string content;
  for (int i = 0; i < 50000; ++i) content += std::to_string(i * 7919) + "\n";
  write_file(folder.file("whole.gz"), content);
  std::string packed;
  {
    std::FILE* file = std::fopen(folder.file("whole.gz").c_str(), "rb");
    REQUIRE(file != nullptr);
    packed.resize(fs::file_size(folder.path / "whole.gz"));
    REQUIRE(std::fread(packed.data(), 1, packed.size(), file) == packed.size());
    std::fclose(file);
  }
  write_file(folder.file("cut"), packed.substr(0, packed.size() / 2));
  CHECK(contains(fault<InputError>([&] { read_file(folder.file("cut")); }), "the gzip data is truncated"));
  CHECK(contains(fault<InputError>([&] { lines_of(folder.file("cut")); }), "the gzip data is truncated"));
  packed[packed.size() / 2] = static_cast<char>(packed[packed.size() / 2] ^ 0x55);
  write_file(folder.file("bad"), packed);
  const std::string damaged = fault<InputError>([&] { read_file(folder.file("bad")); });
  CHECK(contains(damaged, folder.file("bad") + ": cannot read: the gzip data is"));
  CHECK_FALSE(contains(damaged, "<fd:"));
}

TEST_CASE("drafts go when a signal handler says so, and what is committed stays", "[unit]") {
  const Folder folder;
  // More drafts than there are places: those without one are written all the same.
  std::vector<std::unique_ptr<AtomicFile>> files;
  for (int i = 0; i < 40; ++i) files.push_back(std::make_unique<AtomicFile>(folder.file(std::to_string(i))));
  CHECK(folder.entries() == 40);
  files.back()->write("x");
  files.back()->commit();
  files[0]->commit();
  unlink_drafts();
  CHECK(folder.entries() == 2 + 40 - 32 - 1);
  CHECK(fs::exists(folder.file("0")));
  CHECK(read_file(folder.file("39")) == "x");
  files.clear();
  CHECK(folder.entries() == 2);
  // The places are free again.
  const AtomicFile later(folder.file("later"));
  unlink_drafts();
  CHECK(folder.entries() == 2);
}

TEST_CASE("what is flushed is there before the file is", "[unit]") {
  const Folder folder;
  AtomicFile file(folder.file("f"));
  file.write("half");
  file.flush();
  CHECK_FALSE(fs::exists(folder.file("f")));
  REQUIRE(folder.entries() == 1);
  CHECK(read_file(fs::directory_iterator(folder.path)->path().string()) == "half");
  file.commit();
  CHECK(read_file(folder.file("f")) == "half");
}

TEST_CASE("an abandoned file leaves nothing and keeps the old content", "[unit]") {
  const Folder folder;
  write_file(folder.file("r"), "old");
  {
    AtomicFile file(folder.file("r"));
    file.write("new");
  }
  CHECK(read_file(folder.file("r")) == "old");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a failed write names path and reason and leaves nothing", "[unit]") {
  const Folder folder;
  CHECK(contains(fault<DeviceError>([&] { write_file(folder.file("no/such/place"), "x"); }), "No such file"));
  CHECK(contains(fault<DeviceError>([&] { write_file(folder.path.string(), "x"); }), "it is a directory"));
  CHECK(fault<DeviceError>([&] { write_file("/dev/full", "x"); }) ==
        "/dev/full: cannot write: No space left on device");
  fs::create_symlink("/dev/full", folder.path / "full.gz");
  CHECK(contains(fault<DeviceError>([&] { write_file(folder.file("full.gz"), std::string(5'000'000, 'x')); }),
                 "No space"));
  CHECK(folder.entries() == 1);
}

TEST_CASE("devices are written in place and links are followed", "[unit]") {
  const Folder folder;
  write_file("/dev/null", "x");
  CHECK(fs::is_character_file("/dev/null"));
  write_file(folder.file("target"), "old");
  fs::permissions(folder.path / "target", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("target", folder.path / "link");
  write_file(folder.file("link"), "new");
  CHECK(fs::is_symlink(folder.path / "link"));
  CHECK(read_file(folder.file("target")) == "new");
  CHECK(fs::status(folder.path / "target").permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("SHA-256 gives the published digests", "[unit]") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  Sha256 hash;
  for (int i = 0; i < 10000; ++i) hash.update(std::string(100, 'a'));
  CHECK(hash.hex() == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("shipped files are inside the program, byte for byte", "[unit]") {
  for (const std::string& path : resource_paths("")) {
    CHECK(resource(path) == read_file(std::string(FORETOKEN_SOURCE_DIR) + "/" + path));
  }
  CHECK_FALSE(resource("models/data/none.json"));
  CHECK_FALSE(build_info().version.empty());
}
