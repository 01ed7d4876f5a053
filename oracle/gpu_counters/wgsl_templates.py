"""Templates of the WGSL that `instrument` adds to a shader: the log, the path, and the addresses of texels."""

INPUTS = {"workgroup_id": "vec3<u32>", "num_workgroups": "vec3<u32>", "local_invocation_index": "u32"}

HEAD = """
struct BankshotLog {{
    used: atomic<u32>,
    first: u32,
    workgroups: u32,
    room: u32,
    rows: array<vec4<u32>>,
}}
@group({group}) @binding({binding}) var<storage, read_write> {log}: BankshotLog;
var<private> bankshot_path: vec2<u32>;
var<private> bankshot_who: u32;
var<private> bankshot_logs: bool;
var<private> bankshot_stage: u32;
fn bankshot_start(group: vec3<u32>, grid: vec3<u32>, lane: u32) {{
    let number = (group.z * grid.y + group.y) * grid.x + group.x;
    bankshot_logs = number - {log}.first < {log}.workgroups;
    bankshot_who = ((number - {log}.first) << {shift}u) | (lane << 12u);
}}
fn bankshot_row(probe: u32, address: u32) {{
    if bankshot_logs {{
        let where_ = bankshot_stage | (bankshot_path.y & 0xffffffu);
        let row = atomicAdd(&{log}.used, 1u);
        if row < {log}.room {{ {log}.rows[row] = vec4<u32>(bankshot_who | probe, bankshot_path.x, where_, address); }}
    }}
}}
fn bankshot_at(probe: u32) -> bool {{ bankshot_row(probe, 0u); return true; }}
fn bankshot_begin(stage: u32, probe: u32) -> bool {{
    bankshot_stage = stage << 24u;
    return bankshot_at(probe);
}}
fn bankshot_mix(path: vec2<u32>, step: u32) -> vec2<u32> {{
    let x = (path.x ^ step) * 0x9e3779b1u + path.y;
    let y = (path.y + step + 0x7f4a7c15u) * 0x85ebca6bu;
    return vec2<u32>(x ^ (x >> 15u), y ^ (y >> 13u) ^ x);
}}"""

# Texels are laid out as in `sim.ir.texture_handles`: by row, layer and level, followed by one element for all accesses
# out of bounds. Only level 0 is queried: Mesa's software adapter evaluates the level of textureDimensions for one lane
# and returns that result to all.
TEXEL = """fn bankshot_texel_{name}(place: vec4<u32>, level: u32) -> u32 {{
    var number = 0u;
    for (var l = 0u; l < {levels}; l += 1u) {{
        let size = vec4<u32>(max(vec3<u32>({extent}) >> vec3<u32>(l), vec3<u32>(1u)), {third});
        if l == level && all(place < size) {{
            return number + ((place.w * size.z + place.z) * size.y + place.y) * size.x + place.x;
        }}
        number += size.x * size.y * size.z * size.w;
    }}
    return number;
}}"""

FUNCTION = """var<private> bankshot_from_{name}: vec2<u32>;
fn bankshot_enter_{name}(call: u32) {{
    bankshot_from_{name} = bankshot_path;
    bankshot_path = bankshot_mix(bankshot_path, call);
}}
fn bankshot_leave_{name}() {{ bankshot_path = bankshot_from_{name}; }}"""

LOOP = """var<private> bankshot_out_{name}: vec2<u32>;
var<private> bankshot_turns_{name}: u32;
fn bankshot_before_{name}() {{ bankshot_out_{name} = bankshot_path; bankshot_turns_{name} = 0u; }}
fn bankshot_turn_{name}() -> bool {{
    bankshot_turns_{name} += 1u;
    bankshot_path = bankshot_mix(bankshot_out_{name}, bankshot_turns_{name});{rows}
    return true;
}}
fn bankshot_after_{name}() {{ bankshot_path = bankshot_out_{name}; }}"""
