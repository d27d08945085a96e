// Columns as bytes: where each stands.
#include "predictor/serve/binary.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/input_error.h"

namespace stepcast::serve {
namespace {

TEST(Binary, IsLaidOutAsDocumented) {
  BinaryWriter writer("{}", 0);
  writer.Add(std::vector<int>{1, 2, 3});
  writer.Add(std::vector<double>{0.5});
  const std::string bytes = writer.Take();
  const std::string expected(
      "\2\0\0\0{}\0\0"                    // length, head, to 8
      "\1\0\0\0\2\0\0\0\3\0\0\0\0\0\0\0"  // three int32, to 24
      "\0\0\0\0\0\0\xe0\x3f",             // one float64
      32);
  EXPECT_EQ(bytes, expected);
}

TEST(Binary, ReadsWhatItWrites) {
  const std::string head = R"({"size": 5, "columns": "a,b"})";
  BinaryWriter writer(head, 100);
  const std::vector<int> counts = {1, -2, 3, 4, 5};
  const std::vector<double> numbers = {1.5, -2, 3, 4, 1e300};
  writer.Add(counts);
  writer.Add(numbers);
  const std::string bytes = writer.Take();
  BinaryReader reader(bytes);
  EXPECT_EQ(reader.head(), head);
  EXPECT_EQ(reader.Next<int>("a", 5), counts);
  EXPECT_EQ(reader.Next<double>("b", 5), numbers);
  reader.Finish();
}

TEST(Binary, NamesWhatIsCutOff) {
  EXPECT_TRUE(Says(ErrorOf([] { BinaryReader(std::string_view("\1\0", 2)); }), "head: is cut off"));
  BinaryWriter writer("{}", 0);
  writer.Add(std::vector<int>{1, 2});
  const std::string bytes = writer.Take();
  EXPECT_TRUE(Says(ErrorOf([&] { BinaryReader(bytes).Finish(); }), "'8' bytes are left"));
  for (const std::size_t more : {1, 8, 100}) {
    const std::string longer = bytes + std::string(more, '\0');
    BinaryReader read(longer);
    EXPECT_EQ(read.Next<int>("a", 2), (std::vector<int>{1, 2}));
    EXPECT_TRUE(Says(ErrorOf([&] { read.Finish(); }),
                     "columns: '" + std::to_string(more) + "' bytes are left behind the last one"));
  }
  BinaryReader reader(bytes);
  EXPECT_TRUE(Says(ErrorOf([&] { reader.Next<double>("loss_rate", 2); }),
                   "loss_rate: is cut off: 8 bytes are left; allowed: 16 bytes"));
  EXPECT_EQ(reader.Next<int>("a", 2), (std::vector<int>{1, 2})) << "nothing was taken";
}

// What fills a column up to eight bytes belongs to it.
TEST(Binary, AColumnEndsWithItsFilling) {
  BinaryWriter writer("{}", 0);
  writer.Add(std::vector<int>{7});
  const std::string whole = writer.Take();
  ASSERT_EQ(whole.size(), 16U);
  for (const std::size_t left : {3, 4, 7, 8}) {
    const std::string bytes = whole.substr(0, 8 + left);
    BinaryReader reader(bytes);
    if (left == 8) {
      EXPECT_EQ(reader.Next<int>("a", 1), std::vector<int>{7});
      reader.Finish();
    } else {
      EXPECT_TRUE(
          Says(ErrorOf([&] { reader.Next<int>("a", 1); }),
               "a: is cut off: " + std::to_string(left) + " bytes are left; allowed: 8 bytes"));
    }
  }
}

}  // namespace
}  // namespace stepcast::serve
