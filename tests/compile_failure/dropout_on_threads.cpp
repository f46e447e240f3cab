// expect: attune::host::ParallelTrainer: dropout draws its masks from one sequence to the next, which threads
// cannot; set dropout to 0, or train with attune::Trainer
#include <attune/attune.hpp>
#include <attune/host/parallel_trainer.hpp>

constexpr attune::EncoderLayerShape kShape{
    .seq_len = 4, .d_model = 8, .num_heads = 2, .d_ff = 8, .dropout = 0.1};
using Model = attune::Sequential<attune::Linear<attune::LinearShape{4, 8, 8}>,
                                 attune::Residual<attune::Repeat<2, attune::EncoderLayer<kShape>>>>;

using Trainer = attune::host::ParallelTrainer<Model>;
int threads(const Trainer& trainer) { return trainer.threads(); }
