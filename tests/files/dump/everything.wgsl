// Every kind of declaration, statement and expression that the typed module has.
enable f16;
requires pointer_composite_access;
diagnostic(off, derivative_uniformity);

struct Particle {
    position: vec3<f32>,
    @size(16) kind: u32,
    weights: array<f16, 4>,
}

struct Input {
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
}

const SCALE = 1.0 / 3.0;
@id(7) override TILE: u32 = 16;
override WIDE = TILE > 8u || false;

var<private> seed: u32 = TILE + 1;
var<workgroup> tile: array<f32, TILE * 2>;
var<workgroup> hits: atomic<u32>;
@group(0) @binding(0) var<storage, read> particles: array<Particle>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(2) var image: texture_storage_2d<rgba8unorm, write>;

@must_use
fn lerp_to(p: ptr<function, f32>, to: f32, t: f32) -> f32 {
    *p = mix(*p, to, t);
    return *p;
}

fn clear() {
    tile[0] = 0;
    return;
}

@compute @workgroup_size(TILE, 2)
fn main(in: Input, @builtin(num_workgroups) groups: vec3<u32>) {
    const lanes = 2 * 4;
    var sum: f32;
    var pair = vec2(1, 2h);
    let particle = &particles[in.id.x];
    let halves = f32(particle.weights[lanes - 5]);
    for (var i = 0; i < i32(arrayLength(&particles)); i++) {
        if WIDE && i == 3 { continue; }
        sum += SCALE * halves;
        sum = lerp_to(&sum, 1, 0.5);
    }
    loop {
        if sum > 1e10 || sum < 0.1 { break; } else if sum == 3 { seed = 1; }
        seed = seed >> 1;
        continuing {
            pair.y -= 1h;
            break if pair.y < 0h;
        }
    }
    switch particle.kind {
        case 1, 2u: { clear(); }
        case 3, default: { _ = atomicAdd(&hits, 1); }
    }
    @diagnostic(info, derivative_uniformity) while seed > 0 {
        seed--;
    }
    workgroupBarrier();
    textureStore(image, vec2<u32>(), vec4f(vec2f(pair.yx), 0, 1));
    var columns = mat2x2f(1, 0, 0, 1);
    columns[1] = columns * vec2f(sum);
    out[in.local] = vec4(particle.position, select(-sum, f32(groups.x), WIDE));
    {
        let nothing = array<i32, 20>();
        out[0].xy = columns[u32(nothing[in.local])];
    }
}

@fragment
fn shade(@location(0) @interpolate(flat) kind: u32) -> @location(0) vec4f {
    if kind == 0 { discard; }
    return vec4f();
}
