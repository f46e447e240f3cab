using Model = attune::EncoderLayer<attune::EncoderLayerShape{
    .attention = {.seq_len = 32, .d_model = 16, .num_heads = 4}, .d_ff = 32}>;
