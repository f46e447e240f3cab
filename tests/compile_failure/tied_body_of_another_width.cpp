// expect: attune: the output of a layer does not fit the input of the next; see output_fits_input<layer
// output rows, output cols, input rows, input cols> names them
#include <attune/attune.hpp>

using Model =
    attune::Tied<attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>,
                 attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 7}>>;
Model::Parameters parameters;
