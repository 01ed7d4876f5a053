"""Two hundred mistakes that people make, and what the error says: its place, its cause, and how to fix it.

`¦` marks the place in each text. The second column is part of the message, the third part of the hint, None where the
message itself says what to write or where Bankshot cannot know it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bankshot.sim.wgsl.check.check_module import check
from bankshot.sim.wgsl.diagnostics import Diagnostic, WgslError
from bankshot.sim.wgsl.source import Source

Row = tuple[str, str, str | None]

HEAD = """
struct Particle { position: vec3f, mass: f32 }
@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@group(0) @binding(1) var<storage, read> inp: array<f32>;
@group(0) @binding(2) var<uniform> size: vec2u;
@group(0) @binding(3) var image: texture_2d<f32>;
@group(0) @binding(4) var filtering: sampler;
@group(0) @binding(5) var target_image: texture_storage_2d<rgba8unorm, write>;
@group(0) @binding(6) var<storage, read_write> particles: array<Particle>;
var<workgroup> tile: array<f32, 64>;
var<workgroup> counter: atomic<u32>;
const PI = 3.14159;
override SCALE: f32 = 1.0;
fn square(x: f32) -> f32 { return x * x; }
@must_use fn cube(x: f32) -> f32 { return x * x * x; }
fn bump(p: ptr<function, i32>) { *p += 1; }
fn log_it(x: f32) { out[0] = x; }
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = id.x; let n = i32(i); let x = inp[i]; let v = vec3f(x); let yes = i > 3; var k = 0; var w = vec4f();
"""

SYNTAX: list[Row] = [
    ("let a = 1¦", "expected ';' after the 'let' declaration", None),
    ("k = 3¦ out[i] = 1.0;", "expected ';'", None),
    ("log_it(1.0)¦", "expected ';' after the statement", None),
    ("let a = max(1, 2¦; k = a;", "expected ')' after the argument", None),
    ("let a = (1 + 2¦;", "expected ')' after the expression in parentheses", None),
    ("let a = inp[i¦; k = 1;", "expected ']' after the index", None),
    ("let a = 1 + ¦;", "expected an expression, found ';'", None),
    ("let a = * ¦2;", "only a pointer can be dereferenced", "leave out '*'"),
    ("let ¦= 3;", "expected the name of the 'let', found '='", None),
    ("let a: ¦= 3;", "expected the type of 'a', found '='", None),
    ("let a: f32¦;", "expected '=' and a value for 'let a'", None),
    ("var ¦;", "expected the name of the 'var'", None),
    ("if yes ¦k = 1;", "expected '{' before the body of the 'if'", "needs braces"),
    ("if (yes) ¦k = 1; else k = 2;", "expected '{' before the body of the 'if'", "needs braces"),
    ("for (var j = 0; j < 3; j++) ¦k += j;", "expected '{' before the body of the loop", "needs braces"),
    ("while yes ¦k++;", "expected '{' before the body of the loop", "needs braces"),
    ("for (var j = 0¦, m = 1; j < 3; j++) { }", "expected ';' after the initializer of the loop", "before the loop"),
    ("for (var j = 0; j < 3; j++¦ { }", "expected ')' after the update of the loop", None),
    ("for (var j = 0; j < 3¦) { }", "expected ';' after the condition of the loop", None),
    ("if yes { k = 1; } elif¦ k == 2 { }", "expected an assignment, '++' or '--' after 'elif'", "else if"),
    ("¦else { k = 1; }", "expected a statement, found 'else'", "follows the '}' of its 'if'"),
    ("switch k { case 1: ¦k = 2; default: { } }", "expected '{' before the body of the clause", "needs braces"),
    ("switch k { case 1 { } ¦k = 2; }", "expected 'case', 'default' or '}', found 'k'", None),
    ("switch k { ¦}", "expected 'case' or 'default', found '}'", "a switch needs a default: default: {}"),
    ("loop { continuing { } ¦k = 1; }", "expected '}' at the end of the body of the loop", "nothing can follow"),
    ("loop { break ¦if yes; }", "'break if' can only end a 'continuing' block", None),
    ("¦continuing { }", "'continuing' can only end a 'loop'", None),
    ("let a = k¦++;", "expected", "statements of their own"),
    ("let a = ¦++k;", "expected an expression, found '++'", "statements of their own"),
    ("¦++k;", "expected a statement, found '++'", "i++;"),
    ("¦1 + 2;", "expected a statement, found '1'", "let a = …;"),
    ("i¦;", "expected an assignment, '++' or '--' after 'i'", "call it, i(), or assign to it"),
    ("let a = 1 < k ¦< 3;", "comparisons cannot be chained", "&&"),
    ("let a = yes && yes ¦|| yes;", "'&&' and '||' cannot be mixed without parentheses", "(yes && yes) || …"),
    ("let a = i & 3 ¦== 2;", "'&' and '==' cannot be mixed without parentheses", "(i & 3) == …"),
    ("let a = i << 2 ¦+ 1;", "'<<' and '+' cannot be mixed without parentheses", "(i << 2) + …"),
    ("let a = i & 1 ¦| 2;", "'&' and '|' cannot be mixed without parentheses", "(i & 1) | …"),
    ("if k ¦= 1 { }", "expected '{' before the body of the 'if', found '='", "'==' compares"),
    ("if (k¦ = 1) { }", "expected ')'", "'==' compares"),
    ("let a = ¦3.4.5;", "'3.4.5' is not a number", "one '.'"),
    ("let a = ¦1_000;", "'1_000' is not a number", "without '_'"),
    ("let a = ¦'x';", "character ''' (U+0027, apostrophe) cannot stand here", "no characters"),
    ('let a = ¦"x";', "quotation mark", "no strings"),
    ("let a = 1 ¦\\ 2;", "reverse solidus", "written '/'"),
    ("let ¦__a = 1;", "starts with two underscores", "give it another name"),
    ("let ¦_ = 1;", "'_' cannot be the name of the 'let'", "to drop a value, assign it without a keyword: _ = …;"),
    ("let ¦ref = 1;", "'ref' is a reserved word", "another name"),
    ("let a = array<f32¦, 4(1.0);", "expected ';' after the 'let' declaration", None),
    ("¦@workgroup_size(1) let a = 1;", "attributes cannot stand before this statement", None),
    ("¦/* the end is missing", "block comment has no end", None),
]

OTHER_LANGUAGES: list[Row] = [
    ("float¦ a = 1.0;", "expected an assignment, '++' or '--' after 'float'", "var a: f32 = …"),
    ("int¦ a;", "expected an assignment, '++' or '--' after 'int'", "var a: i32 = …"),
    ("for (int¦ j = 0; j < 3; j++) { }", "after 'int'", "var j: i32 = …"),
    ("let a = ¦(f32)i;", "a conversion is written like a call of its type", "f32(i)"),
    ("let a = ¦(float)(i + 1);", "a conversion is written like a call of its type", "f32(…)"),
    ("let a: ¦float = 1.0;", "'float' is not declared", "f32"),
    ("let a: ¦int = 1;", "'int' is not declared", "i32"),
    ("let a = ¦float3(1.0);", "'float3' is not declared", "vec3<f32>"),
    ("let a = ¦lerp(x, 1.0, 0.5);", "'lerp' is not declared", "mix"),
    ("let a = ¦frac(x);", "'frac' is not declared", "fract"),
    ("let a = ¦fmaf(x, x, x);", "'fmaf' is not declared", "fma"),
    ("let a = ¦rsqrt(x);", "'rsqrt' is not declared", "inverseSqrt"),
    ("let a = ¦atan(x, 1.0);", "'atan' takes 1 argument, not 2", "atan2"),
    ("¦__syncthreads();", "starts with two underscores", "workgroupBarrier()"),
    ("¦barrier();", "'barrier' is not declared", "workgroupBarrier()"),
    ("let a = ¦threadIdx.x;", "'threadIdx' is not declared", "local_invocation_id"),
    ("let a = ¦gl_GlobalInvocationID.x;", "'gl_GlobalInvocationID' is not declared", "global_invocation_id"),
    ("¦shared float s[64];", "'shared' is a reserved word", "var<workgroup>"),
    ("let a = yes ¦? 1 : 2;", "question mark", "select(if_false, if_true, condition)"),
    ("¦do { k = 1; } while (yes);", "'do' is a reserved word", "loop {"),
    ("¦printf(1);", "'printf' is not declared", "--trace"),
    ("let a = x.¦abs();", "WGSL has no methods", "abs(x)"),
    ("let a = inp.¦length();", "WGSL has no methods", "arrayLength(&inp)"),
    ("let a = v.¦dot(v);", "WGSL has no methods", "dot(v, …)"),
    ("let a = ¦sizeof(i);", "'sizeof' is a reserved word", "arrayLength"),
    ("let a = ¦null;", "'null' is a reserved word", "WGSL has no null; a pointer always points to a variable"),
    ("let ¦mut a = 1;", "'mut' is a reserved word", "var"),
    ("var a¦[4]: f32;", "expected ':', '=' or ';' after 'a', found '['", "array<f32, 4>"),
    ("let a = ¦[1, 2, 3];", "expected an expression, found '['", "array(1, 2, 3)"),
    ("let a = ¦{1, 2};", "expected an expression, found '{'", "call of its type"),
    ("let a = x ** ¦2;", "only a pointer can be dereferenced", "pow"),
    ("let a = yes¦ and yes;", "expected ';' after the 'let' declaration", "&&"),
    ("let a = not¦ yes;", "expected", "!"),
    ("let a = i ¦as f32;", "'as' is a reserved word", "a conversion is written like a call: f32(x)"),
    ("const int¦ a = 1;", "expected '='", "write const a: i32"),
    ("let a = ¦mod(x, 2.0);", "'mod' is a reserved word", "%"),
    ("let a = ¦isnan(x);", "'isnan' is not declared", "bitcast<u32>(x)"),
    (
        "let a = ¦INFINITY;",
        "'INFINITY' is not declared",
        "WGSL has no infinite constants; use the lowest f32, -3.4028234e38",
    ),
    ("let a = ¦True;", "'True' is not declared", "true"),
    ("let a = ¦uint(x);", "'uint' is not declared", "u32"),
]

NAMES: list[Row] = [
    ("let a = ¦xs;", "'xs' is not declared", "did you mean 'x'?"),
    ("let a = ¦imp[i];", "'imp' is not declared", "'inp'"),
    ("let a = ¦sqaure(x);", "'sqaure' is not declared", "'square'"),
    ("let a = ¦clmap(x, 0.0, 1.0);", "'clmap' is not declared", "'clamp'"),
    ("let a: ¦Particule = particles[0];", "'Particule' is not declared", "'Particle'"),
    ("let a = particles[0].¦postion;", "struct Particle has no member 'postion'", "'position'"),
    ("let a = particles[0].¦speed;", "struct Particle has no member 'speed'", "position, mass"),
    ("let a = v.¦w;", "vec3<f32> has no component 'w'", "it has x, y, z"),
    ("let a = v.¦xg;", "'xg' is not a swizzle of vec3<f32>", "all of xyzw or all of rgba"),
    ("let a = v.¦xyzzy;", "'xyzzy' is not a swizzle of vec3<f32>", "up to four letters"),
    ("let a = x.¦y;", "a value of type f32 has no members", None),
    ("let a = ¦x[0];", "a value of type f32 cannot be indexed", None),
    ("let a = v[¦3];", "index 3 is out of bounds of vec3<f32>, which has 3 elements", "0 to 2"),
    ("let a = tile[¦64];", "index 64 is out of bounds of array<f32, 64>", "0 to 63"),
    ("let a = inp[¦-1];", "index -1 is out of bounds", "the first index is 0"),
    ("let a = inp[¦1.5];", "an index must be an i32 or u32, not f32", "convert it: u32(1.5)"),
    ("let a = inp[¦x];", "an index must be an i32 or u32, not f32", "u32(x)"),
    ("let a = 1; let ¦a = 2;", "'a' is declared twice", None),
    ("var ¦id = 1;", "'id' is declared twice", None),
    ("if yes { let inner = 1; } let b = ¦inner;", "'inner' is not declared", None),
    ("let a = ¦Particle;", "'Particle' is a type, not a value", "Particle(…)"),
    ("let a = ¦square;", "'square' is a function, not a value", "square(…)"),
    ("let a: ¦square = 1;", "'square' is a function, not a type", "such as f32"),
    ("let a = ¦x(1.0);", "'x' is a value and cannot be called", "x * (…)"),
    ("let a = ¦main(id, lane);", "'main' is an entry point and cannot be called", None),
]

TYPES: list[Row] = [
    ("let a = i ¦* x;", "operator '*' does not take u32 and f32", "f32(i)"),
    ("let a = i ¦+ n;", "operator '+' does not take u32 and i32", "u32(n)"),
    ("let a = n ¦/ 2.0;", "operator '/' does not take i32 and abstract-float", "f32(n)"),
    ("let a = v ¦* i;", "operator '*' does not take vec3<f32> and u32", "f32(i)"),
    ("let a = v ¦+ vec2f(1.0);", "operator '+' does not take vec3<f32> and vec2<f32>", None),
    ("let a = id ¦* v;", "operator '*' does not take vec3<u32> and vec3<f32>", "vec3<f32>(id)"),
    ("let a = ¦!i;", "operator '!' does not take u32", "i == 0"),
    ("let a = ¦-i;", "operator '-' does not take u32", "-i32(i)"),
    ("let a = x ¦% i;", "operator '%' does not take f32 and u32", "f32(i)"),
    ("let a = x ¦& 1;", "operator '&' does not take f32 and abstract-int", "convert one of them: i32(x)"),
    ("let a = i ¦<< n;", "operator '<<' does not take u32 and i32", "u32(n)"),
    ("let a = yes ¦+ 1;", "operator '+' does not take bool and abstract-int", "select(0, 1, yes)"),
    ("let a = ¦i && yes;", "the left side of '&&' must be bool, not u32", "i != 0"),
    ("let a = yes || ¦x;", "the right side of '||' must be bool, not f32", "x != 0"),
    ("if ¦i { }", "the condition of an if must be bool, not u32", "i != 0"),
    ("while ¦n { n = 0; }", "the condition of a while must be bool, not i32", "n != 0"),
    ("let a: u32 = ¦x;", "the initializer of 'a' must be u32, not f32", "u32(x)"),
    ("let a: f32 = ¦i;", "the initializer of 'a' must be f32, not u32", "f32(i)"),
    ("let a: vec3f = ¦1.0;", "the initializer of 'a' must be vec3<f32>, not abstract-float", "vec3<f32>(1.0)"),
    ("let a: vec4f = ¦v;", "the initializer of 'a' must be vec4<f32>, not vec3<f32>", "vec4<f32>(v, …)"),
    ("let a: i32 = ¦1.5;", "the initializer of 'a' must be i32, not abstract-float", "i32(1.5)"),
    ("let a: u32 = ¦-1;", "-1 does not fit in u32", "an i32 holds negative numbers"),
    ("out[i] = ¦i;", "the assigned value must be f32, not u32", "f32(i)"),
    ("k = ¦yes;", "the assigned value must be i32, not bool", "i32(yes)"),
    ("k += ¦1.5;", "'+=' on i32 does not take abstract-float", "i32(1.5)"),
    ("out[i] += ¦i;", "'+=' on f32 does not take u32", "f32(i)"),
    ("let a = select(1.0, ¦2u, yes);", "no overload of 'select' takes (abstract-float, u32, bool)", "f32(2u)"),
    ("let a = max(¦i, 1.5);", "no overload of 'max' takes (u32, abstract-float)", "f32(i)"),
    ("let a = sqrt(¦i);", "no overload of 'sqrt' takes (u32)", "f32(i)"),
    ("let a = dot(v, ¦x);", "no overload of 'dot' takes (vec3<f32>, f32)", "convert it: vec3<f32>(x)"),
    ("let a = ¦vec3f(1.0, 2.0);", "no overload of 'vec3<f32>' takes", "it needs 3 components, and 2 are given"),
    ("let a = vec4f(¦v);", "no overload of 'vec4<f32>' takes (vec3<f32>)", "it needs 4 components, and 3 are given"),
    ("let a = vec2(1.0, ¦i);", "no overload of 'vec2' takes (abstract-float, u32)", "convert it: f32(i)"),
    ("let a = ¦array<f32, 2>(1.0);", "array<f32, 2> has 2 elements, but 1 value", "give 2 values, or none"),
    ("let a = ¦Particle(v);", "Particle has 2 members, but 1 value", "position: vec3<f32>, mass: f32"),
    ("let a = Particle(¦x, x);", "member 'position' of Particle is vec3<f32>, but the value is f32", "vec3<f32>(x)"),
    ("let a: array<f32> = ¦inp;", "a value of type array<f32> cannot be read as a whole", "read one element: inp[i]"),
    ("let a = ¦inp;", "a value of type array<f32> cannot be read as a whole", "inp[i]"),
    ("let a = mat3x3f(¦1.0);", "no overload of 'mat3x3<f32>' takes", None),
    ("var a: ¦vec3;", "'vec3' takes 1 template argument, not 0", "vec3<f32>"),
    ("var a: ¦f32<i32>;", "type 'f32' takes no template arguments", None),
    ("var a: vec3<¦Particle>;", "the component type of a vector must be", None),
    ("var a: array<f32, ¦0>;", "an array length must be at least 1, not 0", None),
    ("var a: array<f32, ¦i>;", "an array length must be a const- or override-expression", None),
    ("var a: ¦array<f32>;", "cannot have type array<f32>", "an array without a size must be in var<storage>"),
]

ASSIGNMENTS: list[Row] = [
    ("¦x = 2.0;", "'x' is a 'let', which cannot be assigned to", "var x"),
    ("¦i += 1;", "'i' is a 'let', which cannot be assigned to", "var i"),
    ("¦n++;", "'n' is a 'let', which cannot be assigned to", "var n"),
    ("¦v.x = 1.0;", "'v' is a 'let', which cannot be assigned to", "var v"),
    ("¦id.x = 1;", "'id' is a parameter, which cannot be assigned to", "copy"),
    ("¦PI = 3.0;", "'PI' is a 'const', which cannot be assigned to", "var<private> PI"),
    ("¦SCALE = 3.0;", "'SCALE' is an 'override', which cannot be assigned to", "copy"),
    ("for (let j = 0; j < 3; ¦j++) { }", "'j' is a 'let', which cannot be assigned to", "var j"),
    ("¦inp[i] = 1.0;", "'inp' can only be read", "read_write"),
    ("¦size.x = 1;", "'size' can only be read", "storage"),
    ("¦counter = 1;", "a value of type atomic<u32> cannot be assigned", "atomicStore"),
    ("let a = ¦counter;", "a value of type atomic<u32> cannot be read as a whole", "atomicLoad"),
    ("¦square(x) += 1.0;", "the result of a call is no place to assign to", "var a = square(x);"),
    ("¦square(x)++;", "the result of a call is no place to assign to", "var a = square(x);"),
    ("¦(k + 1) = 2;", "this expression is no place to assign to", "a variable, or to a part of one"),
    ("¦out = inp;", "a value of type array<f32> cannot be assigned", "one by one, in a loop: out[i] = …"),
    ("¦out = array(x, x);", "a value of type array<f32> cannot be assigned", "out[i] = …"),
    ("¦particles = inp;", "a value of type array<Particle> cannot be assigned", "particles[i] = …"),
    ("¦square(x) = 1.0;", "the result of a call is no place to assign to", "var a = square(x);"),
    ("¦square = 1.0;", "'square' is a function, not a value", "square(…)"),
    ("let p = &k; ¦p = 3;", "only a variable, or a part of one, can be assigned to", "write '*' before it"),
    ("¦w.xx = vec2f();", "a component is assigned twice", "each component once"),
    ("let p = &¦x;", "only a variable, or a part of one, has an address", "only a 'var' has an address: var copy = x;"),
    ("let p = &¦w.x;", "a component of a vector has no address", "var copy = w.x;"),
    ("let a = *¦k;", "only a pointer can be dereferenced, not i32", "leave out '*'"),
    ("¦yes++;", "'yes' is a 'let'", "var yes"),
    ("var f = 1.0; ¦f++;", "'++' needs an i32 or u32, not f32", "f += 1"),
]

CALLS: list[Row] = [
    ("let a = ¦square();", "'square' takes 1 argument, not 0", None),
    ("let a = ¦square(x, x);", "'square' takes 1 argument, not 2", None),
    ("let a = square(¦i);", "parameter 'x' of 'square' is f32, but the argument is u32", "f32(i)"),
    ("bump(¦k);", "parameter 'p' of 'bump' is ptr<function, i32>, but the argument is i32", "&k"),
    ("let a = square(¦&k);", "parameter 'x' of 'square' is f32", "f32(k)"),
    (
        "let a = ¦log_it(x);",
        "'log_it' returns nothing, so it cannot be used as a value",
        "call it in a statement of its own: log_it(…);",
    ),
    ("¦cube(x);", "the result of 'cube' must be used", "_ ="),
    ("¦max(1, 2);", "the result of 'max' must be used", "_ ="),
    ("¦i32(x);", "must be used", "to drop it on purpose, assign it: '_ = …'"),
    ("let a = ¦clamp(x, 1.0);", "'clamp' takes 3 arguments, not 2", None),
    ("let a = arrayLength(¦inp);", "argument 1 of 'arrayLength' must be a pointer, not a variable", "&inp"),
    ("let a = arrayLength(¦&tile);", "no overload of 'arrayLength' takes", "64"),
    ("atomicAdd(¦counter, 1u);", "argument 1 of 'atomicAdd' must be a pointer, not a variable", "&counter"),
    ("atomicAdd(&counter, ¦1i);", "no overload of 'atomicAdd' takes", "u32(1i)"),
    ("¦atomicAdd(&out[0], 1.0);", "no overload of 'atomicAdd' takes", "atomic"),
    ("let a = textureLoad(image, ¦vec2f(), 0);", "no overload of 'textureLoad' takes", "vec2<i32>"),
    ("let a = ¦textureLoad(image, vec2i());", "'textureLoad' takes", None),
    ("let a = ¦textureSample(image, filtering, vec2f());", "cannot be used in a compute shader", "textureSampleLevel"),
    ("textureStore(target_image, vec2i(), ¦1.0);", "no overload of 'textureStore' takes", "vec4<f32>(1.0)"),
    (
        "let a = ¦subgroupAdd(x);",
        "'subgroupAdd' needs the extension 'subgroups'",
        "add 'enable subgroups;' at the top of the module",
    ),
    ("let a = ¦bitcast(x);", "'bitcast' needs a template argument", "bitcast<u32>"),
    ("let a = bitcast<vec2f>(¦x);", "no overload of 'bitcast<vec2<f32>>' takes (f32)", None),
]

CONTROL: list[Row] = [
    ("¦break;", "a break must be in a loop or a switch", None),
    ("¦continue;", "a continue must be in a loop", None),
    ("¦discard;", "a compute shader cannot discard", "return;"),
    ("return ¦1;", "function 'main' returns nothing", "write return;"),
    ("switch ¦x { default: { } }", "a switch selector must be i32 or u32, not f32", "convert it: i32(x)"),
    ("switch ¦yes { default: { } }", "a switch selector must be i32 or u32, not bool", "if"),
    ("switch n { case ¦1u: { } default: { } }", "a case selector must be i32, not u32", "1"),
    ("¦switch n { case 1: { } }", "a switch needs a default", "default: {}"),
    ("switch n { case 1: { } case ¦1: { } default: { } }", "case 1 is given twice", "selects one case"),
    ("switch n { case ¦k: { } default: { } }", "must be a const-expression", None),
    ("¦loop { k++; }", "this loop can never be left", "break"),
    (
        "if i > 3 { return; } ¦workgroupBarrier();",
        "must only be called in uniform control flow",
        "instead of the 'return'",
    ),
    ("if lane < 3 { ¦workgroupBarrier(); }", "must only be called in uniform control flow", None),
    ("for (var j = 0u; j < lane; j++) { ¦workgroupBarrier(); }", "must only be called in uniform control flow", None),
    ("if tile[0] > 0 { ¦workgroupBarrier(); }", "must only be called in uniform control flow", None),
    ("const_assert ¦PI > 4;", "this const_assert is false", None),
    ("const a = ¦x;", "must be a const-expression", "let"),
    ("const a = ¦1 / 0;", "division by zero", None),
    ("let a = ¦2147483648i;", "does not fit i32, at most 2147483647", None),
    ("let a = ¦4294967296u;", "does not fit u32, at most 4294967295", None),
    ("let a = ¦1e39f;", "literal is too large for f32", "3.4028234e38f"),
    ("let a = ¦i << 32;", "the shift amount must be less than 32, the width of u32, not 32", "& 31u"),
    ("let a = ¦n >> 33u;", "the shift amount must be less than 32, the width of i32, not 33", "& 31u"),
    ("¦k <<= 32u;", "the shift amount must be less than 32, the width of i32, not 32", "& 31u"),
    (
        "let a = ¦vec2u(i) << vec2u(3u, 40u);",
        "the shift amount must be less than 32, the width of u32, not 40",
        "& 31u",
    ),
    ("let a = ¦1 << 64u;", "the shift amount must be less than 64, the width of abstract-int, not 64", "abstract-int"),
    ("let a = ¦1 << 63u;", "the result must fit in abstract-int, which has 64 bits", "mask the bits"),
    ("let a = ¦1i << 31u;", "the result must fit in i32", "a u32 has no sign bit"),
    ("let a = i << ¦-1;", "the shift amount must not be negative", "write >>"),
    ("let a = vec2i(n) >> ¦vec2(1, -2);", "the shift amount must not be negative", "write <<"),
    ("for (var j = 0; j < 3; ¦let m = 1) { }", "an assignment, '++', '--' or a call as the update of the loop", "body"),
    ("for (var j = 0; j < 3; ¦return) { }", "an assignment, '++', '--' or a call as the update of the loop", "body"),
    ("for (var j = 0; j < 3; ¦if yes { j++; }) { }", "as the update of the loop, found 'if'", "body"),
    ("for (var j = 0; j < 3; ¦{ j++; }) { }", "as the update of the loop, found '{'", "body"),
    ("for (var j = 0; j < 3; j++¦, k++) { }", "expected ')' after the update of the loop", "one statement"),
    ("for (var j = 0; j < 3; j++¦;) { }", "expected ')' after the update of the loop", "leave out the ';'"),
    ("for (¦return; yes; ) { }", "a declaration, an assignment, '++', '--' or a call as the initializer", "body"),
    ("for (¦const_assert true; yes; ) { }", "as the initializer of the loop, found 'const_assert'", "body"),
    ("loop { k++; continuing { ¦return; } }", "a return cannot be in a continuing block", "break if"),
    ("loop { k++; continuing { ¦continue; } }", "a continue cannot be in a continuing block", "'if'"),
    ("var<¦f32> a = 1.0;", "'f32' is a type, not an address space", "write var a: f32 = …"),
    ("var<function, ¦f32> a: f32;", "a function-scope variable takes no access mode", "write var a: f32"),
    ("let¦<f32> a = 1.0;", "expected the name of the 'let', found '<'", "let name: T = …"),
    (
        "bump(¦&out[0]);",
        "parameter 'p' of 'bump' is ptr<function, i32>, but the argument is ptr<storage, f32, read_write>",
        "declare the pointer as ptr<storage, f32, read_write>, or point to a converted copy: var copy = i32(out[0]);",
    ),
    (
        "let a = bump(¦&w);",
        "ptr<function, i32>, but the argument is ptr<function, vec4<f32>>",
        "ptr<function, vec4<f32>>",
    ),
    ("let a: ptr<function, u32> = ¦&k;", "must be ptr<function, u32>, not ptr<function, i32>", "as ptr<function, i32>"),
    ("let a: i32 = ¦&k;", "must be i32, not ptr<function, i32>", "write k for the value"),
]

MODULES: list[Row] = [
    ("const a = ¦9223372036854775807 + 1;", "overflows abstract-int", None),
    (
        "@compute @workgroup_size(1) fn main() { let a = 1;¦ ",
        "expected '}' at the end of the body of the function",
        None,
    ),
    (
        "fn a() { if true { } ¦fn b() { }",
        "expected '}' at the end of the body of the function",
        "functions cannot be declared within functions",
    ),
    ("fn a() { } ¦}", "expected a declaration, found '}'", "more '}' than '{'"),
    ("fn ¦() { }", "expected the name of the function, found '('", None),
    ("fn a ¦{ }", "expected '(' after 'fn a'", None),
    ("fn a(x¦) { }", "expected ':' and a type after the parameter 'x'", None),
    ("fn a(float ¦x) { }", "expected ':'", "x: f32"),
    ("fn a(x: f32¦; y: f32) { }", "expected ',' or ')' after the parameter", "the separator here is ','"),
    ("fn a()¦: f32 { return 1.0; }", "expected '->' or '{'", "follows '->'"),
    ("fn a() -> ¦{ }", "expected the type of the result, found '{'", None),
    ("¦void a() { }", "expected a declaration, found 'void'", "fn name"),
    ("¦function a() { }", "expected a declaration, found 'function'", "fn name"),
    ("¦float a = 1.0;", "expected a declaration, found 'float'", "const a"),
    ("¦let a = 1;", "expected a declaration, found 'let'", "'const' or 'override'"),
    ("struct A { x: f32¦; y: f32; }", "expected ',' or '}' after the member", "the separator here is ','"),
    ("struct A { float ¦x; }", "expected ':'", "x: f32"),
    ("struct A { ¦}", "expected a member in struct 'A', found '}'", "a struct has at least one member"),
    ("struct A { x: f32, ¦x: f32 }", "'x' is declared twice", None),
    ("struct A { x: ¦array<f32>, y: f32 }", "must be the last member", None),
    ("struct A { x: ¦sampler }", "member 'x' cannot have type sampler", None),
    ("struct A { a: ¦A }", "the declaration of 'A' needs itself", None),
    ("fn a() { } fn ¦a() { }", "'a' is declared twice", None),
    ("fn a(x: f32, ¦x: f32) { }", "'x' is declared twice", None),
    ("fn ¦a(x: bool) -> f32 { if x { return 1.0; } }", "does not return a value of type f32 on every path", "return"),
    ("fn a() -> f32 { ¦return; }", "must return a value of type f32", None),
    ("fn a() -> f32 { return ¦1u; }", "the value that 'a' returns must be f32, not u32", "f32(1u)"),
    ("fn a() { ¦a(); }", "function 'a' calls itself", "no recursion"),
    ("var<storage> ¦a: array<f32>;", "resource 'a' needs @group and @binding", "@group(0) @binding(0)"),
    ("@group(0) var<storage> ¦a: array<f32>;", "resource 'a' needs @binding", "@binding(0)"),
    ("@binding(0) var<uniform> ¦a: f32;", "resource 'a' needs @group", "@group(0)"),
    ("@group(0) @binding(0) ¦@binding(1) var<uniform> a: f32;", "attribute '@binding' is given twice", None),
    ("@group(¦-1) @binding(0) var<uniform> a: f32;", "@group must not be negative", None),
    ("var ¦a: f32;", "needs an address space", "var<private>"),
    ("@group(0) @binding(0) var<storage, ¦write> a: array<f32>;", "read or read_write, not write", None),
    ("@group(0) @binding(0) var<uniform> a: ¦array<f32>;", "cannot have type array<f32>", "storage"),
    ("@group(0) @binding(0) var<storage> a: ¦bool;", "cannot have type bool", "u32"),
    ("@group(0) @binding(0) var<storage> a: ¦atomic<u32>;", "must be read_write", None),
    (
        "@group(0) @binding(0) var<¦buffer> a: array<f32>;",
        "'buffer' is a type generator, not an address space",
        "write var<storage, read_write> a: array<f32>",
    ),
    (
        "@group(0) @binding(0) var<storage, read_write, ¦f32> a: f32;",
        "takes an address space and an access mode, and nothing else",
        "write var<storage, read_write> a: f32",
    ),
    ("@group(0) @binding(0) var<storage, ¦f32> a: f32;", "not an access mode", "var<storage, read_write> a: f32"),
    ("var<private, ¦4> a: f32;", "an access mode is expected here", "write var<private> a: f32"),
    ("var<workgroup, ¦read_write> a: f32;", "takes no access mode", "write var<workgroup> a: f32"),
    ("var<¦array<f32, 4>> a;", "'array' is a type generator, not an address space", "var<private> a: array<f32, 4>"),
    ("var<¦function> a: f32;", "cannot be in the function address space", "write var<private> a: f32"),
    ("var<¦> a: f32;", "expected a template argument, found '>'", "var<storage, read_write>"),
    ("struct A { @size(¦2) a: f32 }", "@size must be at least 4, the size of f32, not 2", "write @size(4)"),
    ("struct A { ¦@size(64) a: array<f32> }", "@size cannot be given to array<f32>", "leave it out"),
    ("struct A { @align(¦3) a: f32 }", "@align must be a power of two, not 3", "write @align(4)"),
    ("struct A { @align(¦0) a: vec3f }", "@align must be a power of two, not 0", "write @align(16)"),
    ("struct A { @align(¦8) a: vec3f }", "@align must be at least 16, the alignment of vec3<f32>, not 8", "@align(16)"),
    ("var<workgroup> a: array<f32, 4> = ¦array<f32, 4>();", "cannot have an initializer", "it starts as zero"),
    (
        "var<private> a: ¦atomic<u32>;",
        "cannot have type atomic<u32>",
        "atomics are in var<workgroup> and var<storage, read_write>",
    ),
    ("fn f() { var<¦workgroup> a: array<f32, 4>; }", "must be declared at module scope", None),
    ("override a: ¦vec3f;", "override 'a' must be a scalar", None),
    ("const a¦;", "expected '=' and a value for 'const a'", None),
    (
        "const a: f32 = ¦b; var<private> b = 1.0;",
        "the initializer of 'a' must be a const-expression, but 'b' is a variable, known only when the shader runs",
        None,
    ),
    ("@compute fn ¦a() { }", "needs a @workgroup_size", "@workgroup_size(64)"),
    ("¦@workgroup_size(64) fn a() { }", "@workgroup_size is only for a compute entry point", "@compute"),
    ("@compute @workgroup_size(¦0) fn a() { }", "@workgroup_size must be at least 1, not 0", None),
    ("@compute @workgroup_size(1) fn a(¦id: vec3u) { }", "needs a @builtin", "@builtin(global_invocation_id)"),
    (
        "@compute @workgroup_size(1) fn a(@builtin(¦globl_invocation_id) id: vec3u) { }",
        "'globl_invocation_id' is not a built-in value",
        "global_invocation_id",
    ),
    ("@compute @workgroup_size(1) fn a(¦@builtin(global_invocation_id) id: u32) { }", "vec3<u32>, not u32", None),
    (
        "@compute @workgroup_size(1) fn a(@builtin(position) ¦p: vec4f) { }",
        "built-in value 'position' is not an input of a compute entry point",
        None,
    ),
    ("@compute @workgroup_size(1) fn a() -> ¦f32 { return 1.0; }", "cannot return a value", "var<storage, read_write>"),
    ("@¦compte @workgroup_size(1) fn a() { }", "there is no attribute 'compte'", "compute"),
    (
        "@workgroup_size(1) ¦struct A { x: f32 }",
        "expected 'fn', 'var' or 'override' after attributes, found 'struct'",
        None,
    ),
    ("¦@group(0) fn a() { }", "attribute '@group' is not allowed on a function", "it goes on: module-scope variable"),
    ("var<private> a: ¦f16;", "type 'f16' needs the extension 'f16'", "enable f16;"),
    ("enable ¦f61;", "'f61' is not an extension", "f16"),
    ("enable ¦subgroup;", "'subgroup' is not an extension", "subgroups"),
    ("fn a() { } ¦enable f16;", "must come before all declarations", None),
    ("fn a(¦@builtin(subgroup_size) x: u32) { }", "@builtin is only for a parameter of an entry point", None),
    ("fn a() -> u32 { return ¦subgroupAdd(1u); }", "needs the extension 'subgroups'", "enable subgroups;"),
    ("alias A = ¦B;", "'B' is not declared", None),
    (
        "enable dual_source_blending; @fragment fn a() -> @location(0) ¦@blend_src(0) vec4f { return vec4f(); }",
        "not allowed on a return type",
        "struct member",
    ),
    ("¦\ufefffn a() { }", "byte order mark", "without it"),
    ("¦#version 450", "number sign", None),
    ("¦import a;", "'import' is a reserved word", "a module is one text; Bankshot's preprocessor has #include"),
]
TABLES = (SYNTAX, OTHER_LANGUAGES, NAMES, TYPES, ASSIGNMENTS, CALLS, CONTROL)
ROWS = [(f"{HEAD}{text} }}", *rest) for table in TABLES for text, *rest in table] + MODULES


def test_there_are_many() -> None:
    assert len({text for text, *_ in ROWS}) == len(ROWS) >= 200


@pytest.mark.parametrize(("text", "said", "hint"), ROWS, ids=[row[0].removeprefix(HEAD)[:60] for row in ROWS])
def test_a_mistake_is_told_once_with_place_cause_and_cure(text: str, said: str, hint: str | None) -> None:
    assert len(refused(text, said, hint)) == 1


def refused(text: str, said: str, hint: str | None) -> Sequence[Diagnostic]:
    """The errors of a row of these tables, the first of which is as the row says."""
    at, source = text.index("¦"), Source(text.replace("¦", ""))
    with pytest.raises(WgslError) as caught:
        check(source)
    first = caught.value.diagnostics[0]
    assert said in first.message
    assert hint is None if first.hint is None else hint and hint in first.hint
    assert first.span is not None
    assert source.place(first.span.start) == source.place(at)
    return caught.value.diagnostics
