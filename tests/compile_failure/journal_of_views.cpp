// expect: attune::TrainingJournal: the input, target or mask is a view, whose address would be written; copy the numbers into a Tensor or an array, or journal the sequence by its number
#include "journal.hpp"

using Attention =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 2, .d_model = 4, .num_heads = 1}>;
using Mask = attune::AdditiveMask<float, 2, 2>;

void train(attune::TrainingJournal<attune::Trainer<Attention>, Sink>& journal,
           const attune::JournaledSequence<Attention::Input, Attention::Output, Mask>& sequence) {
  (void)journal.accumulate(sequence);
}
