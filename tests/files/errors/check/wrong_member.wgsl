struct Params {
    rows: u32,
    columns: u32,
}

@group(0) @binding(0) var<uniform> params: Params;

fn f() -> u32 {
    return params.colums;
}
