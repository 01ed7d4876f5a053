// A uniform loop, a divergent one, a switch, and a function that returns early.
const ROUNDS = 3u;

@group(0) @binding(0) var<storage, read_write> y: array<u32>;

fn clamped(value: u32) -> u32 {
    if value > 100u {
        return 100u;
    }
    return value;
}

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var sum = 0u;
    for (var i = 0u; i < ROUNDS; i++) {
        sum += i * i;
    }
    var left = id.x;
    loop {
        if left == 2u {
            break;
        }
        if left % 2u == 0u {
            left /= 2u;
            continue;
        }
        sum += left;
        continuing {
            left = left >> 1u;
            break if left == 0u;
        }
    }
    switch id.x {
        case 0u, 1u: {
            sum += 10u;
        }
        default: {
            sum = clamped(sum * id.x);
        }
    }
    y[id.x] = sum;
}
