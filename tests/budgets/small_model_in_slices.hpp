using Model = attune::EncoderLayer<attune::EncoderLayerShape{
    .attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}, .d_ff = 8}>;
