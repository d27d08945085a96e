// Random questions and what the program answers to them, for the tests of the page:
//
//   stepcast_web_questions COUNT FOLDER
//
// Writes FOLDER/N.records, of some clusters each, and beside each N.jsonl: a line for each question
// with its target, its body and the answer of the door that is compiled for this machine.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>

#include "data/io/text_file.h"
#include "data/values/training_facts.h"
#include "predictor/json/json.h"
#include "predictor/web/door.h"
#include "predictor/web/records.h"
#include "tests/record/random_questions.h"

namespace stepcast {
namespace {

constexpr int kQuestionsOfPlace = 50;

// What a question is about, by the keys of a request; now and then trained in a way of its own.
Json TargetOf(const Place& place, Draw* draw) {
  Json json = {
      {"cluster", place.cluster.name}, {"workload", place.workload.name}, {"device", place.device}};
  constexpr double kStated = 0.1;
  for (const TrainingFact& fact : TrainingFacts()) {
    const int last = static_cast<int>(fact.words.names.size()) - 1;
    const auto word = static_cast<std::size_t>(draw->Whole(0, last));
    if (draw->Chance(kStated)) json[fact.key] = fact.words.names[word];
  }
  return json;
}

// The plan by the keys of a request; what only C++ states of it is not asked.
Json PlanOf(const Plan& plan) {
  Json json = PlanJson(plan);
  for (const char* counted : {"workers", "global_batch"}) json.erase(counted);
  return json;
}

// The same for many workers at once.
Json BatchOf(const Json& target, const Plan& plan, Draw* draw) {
  Json batch = target;
  batch["plan"] = PlanOf(plan);
  for (const char* key : {"placement", "hosts"}) batch["plan"].erase(key);
  for (int i = 0; i < 20; ++i) batch["queries"]["workers"].push_back(draw->LogWhole(1, 500));
  return batch;
}

int Write(int count, const std::string& folder) {
  const Shipped shipped(STEPCAST_SOURCE_DIR);
  for (int number = 0; number * kQuestionsOfPlace < count; ++number) {
    Draw draw(static_cast<std::uint64_t>(number));
    Draw draw_training(~static_cast<std::uint64_t>(number));
    Place place = DrawPlace(shipped, &draw);
    place.profile = nullptr;  // the page has none
    serve::Inventory inventory{{place.cluster}, {place.workload}, shipped.devices};
    const std::string records = web::WriteRecords(inventory);
    const web::Door door(inventory);
    std::string lines;
    const auto ask = [&](const char* target, const Json& body) {
      const serve::Reply reply = door.Ask(target, body.dump());
      lines += Json{{"target", target},
                    {"body", body.dump()},
                    {"status", reply.status},
                    {"answer", Json::parse(reply.body)}}
                   .dump() +
               "\n";
    };
    for (int i = 0; i < std::min(kQuestionsOfPlace, count - number * kQuestionsOfPlace); ++i) {
      const Plan plan = DrawPlan(place, &draw);
      const Json target = TargetOf(place, &draw_training);
      Json request = target;
      request.update(PlanOf(plan));
      ask("/v1/predict", request);
      if (i % 10 == 0) {
        ask("explain", request);
        ask("/v1/predict_batch", BatchOf(target, plan, &draw));
      }
    }
    const std::string name = folder + "/" + std::to_string(number);
    WriteTextFile(name + ".records", records);
    WriteTextFile(name + ".jsonl", lines);
  }
  return 0;
}

}  // namespace
}  // namespace stepcast

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: stepcast_web_questions COUNT FOLDER\n";
    return 2;
  }
  return stepcast::Write(std::atoi(argv[1]), argv[2]);
}
