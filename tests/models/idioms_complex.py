"""Small models that compute with complex numbers: Fourier transforms, complex weights, rotations, state spaces.

As in idioms.py: CASES are trained and compared, REFUSED must be refused with words. Types are taken from what is at hand,
so that PyTorch's own run is in float64 throughout."""

import torch
from torch import nn
from torch.nn import functional as F

from idioms import CLASSES, D, T, Idiom, collecting, image, linear, parameter, sequence, tokens

CASES: dict[str, Idiom] = {}
case = collecting(CASES)


def complex_parameter(*shape, trained=True):
    return lambda: nn.Parameter(torch.randn(shape, dtype=torch.cfloat) * 0.3, requires_grad=trained)


def signal(n):
    return (torch.randn(n, 64),)


def made(module, *arguments, **options):
    return lambda: module(*arguments, **options)


# ---- Operators in frequency space ----


@case(sequence, w=complex_parameter(D, 8, 4), head=linear(8))
def fourier_operator(m, x):
    """Fourier Neural Operator (Li et al. 2021), an odd length."""
    f = torch.fft.rfft(x.transpose(1, 2))
    out = torch.zeros(x.shape[0], 8, T // 2 + 1, dtype=f.dtype)
    out[:, :, :4] = torch.einsum("bix,iox->box", f[:, :, :4], m.w)
    return m.head(F.gelu(torch.fft.irfft(out, n=T)).mean(-1))


@case(image, w1=complex_parameter(3, 4, 3, 3), w2=complex_parameter(3, 4, 3, 3), skip=made(nn.Conv2d, 3, 4, 1),
      norm=made(nn.BatchNorm2d, 4), head=linear(4))
def fourier_operator_2d(m, x):
    f = torch.fft.rfft2(x)
    out = torch.zeros(x.shape[0], 4, 8, 5, dtype=f.dtype)
    out[:, :, :3, :3] = torch.einsum("bixy,ioxy->boxy", f[:, :, :3, :3], m.w1)
    out[:, :, -3:, :3] = torch.einsum("bixy,ioxy->boxy", f[:, :, -3:, :3], m.w2)
    return m.head(F.gelu(m.norm(torch.fft.irfft2(out, s=(8, 8)) + m.skip(x))).mean((2, 3)))


@case(image, w=parameter(3, 4, 3, 3, 2), head=linear(4))
def fourier_operator_of_pairs(m, x):
    f = torch.fft.rfft2(x, norm="ortho")[:, :, :3, :3]
    y = torch.einsum("bixy,ioxy->boxy", f, torch.view_as_complex(m.w))
    return m.head(torch.fft.irfft2(y, s=(7, 5), norm="ortho").relu().mean((2, 3)))


@case(image, filter=parameter(8, 5, 3, 2), norm=made(nn.LayerNorm, 3), head=linear(3))
def global_filter(m, x):
    """GFNet (Rao et al. 2021)."""
    f = torch.fft.rfft2(m.norm(x.permute(0, 2, 3, 1)), dim=(1, 2), norm="ortho")
    y = torch.fft.irfft2(f * torch.view_as_complex(m.filter), s=(8, 8), dim=(1, 2), norm="ortho")
    return m.head(F.gelu(y).mean((1, 2)))


@case(tokens, words=made(nn.Embedding, 50, 8), norm=made(nn.LayerNorm, 8), head=linear(8))
def mixing(m, ids):
    """FNet (Lee-Thorp et al. 2022)."""
    x = m.words(ids)
    return m.head(m.norm(x + torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real).mean(1))


@case(image, lift=made(nn.Conv2d, 3, 8, 1), w=parameter(2, 2, 4, 4), b=parameter(2, 2, 4), head=linear(8))
def adaptive_operator(m, x):
    """AFNO (Guibas et al. 2022): a block-diagonal product on the parts, shrunk."""
    x = m.lift(x).permute(0, 2, 3, 1)
    f = torch.fft.rfft2(x, dim=(1, 2), norm="ortho").reshape(x.shape[0], 8, 5, 2, 4)
    of = lambda part, w: torch.einsum("...bi,bio->...bo", part, w)
    real = F.relu(of(f.real, m.w[0]) - of(f.imag, m.w[1]) + m.b[0])
    imag = F.relu(of(f.imag, m.w[0]) + of(f.real, m.w[1]) + m.b[1])
    f = torch.view_as_complex(F.softshrink(torch.stack([real, imag], -1), 0.01)).reshape(x.shape[0], 8, 5, 8)
    return m.head((torch.fft.irfft2(f, s=(8, 8), dim=(1, 2), norm="ortho") + x).mean((1, 2)))


@case(image, w=complex_parameter(3, 8, 8), head=linear(3))
def shifted_spectrum(m, x):
    f = torch.fft.fftshift(torch.fft.fftn(x, dim=(-2, -1)), dim=(-2, -1)) * m.w
    return m.head(torch.fft.ifftn(torch.fft.ifftshift(f, dim=(2, 3)), dim=(2, 3)).abs().mean((2, 3)))


@case(sequence, body=linear(D, D), head=linear(2 * (T // 2 + 1)))
def magnitudes_and_phases(m, x):
    f = torch.fft.rfft(torch.tanh(m.body(x)), dim=1, norm="forward")
    return m.head(torch.cat([f.abs().mean(-1), torch.angle(f).sin().mean(-1)], 1))


@case(sequence, window=parameter(T), head=linear(D * 4))
def other_lengths(m, x):
    f = torch.fft.rfft(x.transpose(1, 2) * m.window, n=12)
    return m.head((torch.fft.irfft(f, n=5)[..., :4] + torch.fft.hfft(f, n=6)[..., 2:]).flatten(1))


# ---- Sound ----


@case(signal, window=lambda: torch.hann_window(16), conv=made(nn.Conv1d, 9, 6, 3), head=linear(6))
def spectrogram(m, x):
    s = torch.stft(x, 16, hop_length=8, window=m.window, return_complex=True)
    return m.head(F.relu(m.conv(torch.log1p(s.abs()))).mean(-1))


@case(signal, mask=complex_parameter(9, 1), window=lambda: torch.hann_window(16), head=linear(64))
def masked_spectrum(m, x):
    s = torch.stft(x, 16, hop_length=4, window=m.window, return_complex=True) * m.mask
    return m.head(torch.istft(s, 16, hop_length=4, window=m.window, length=64))


# ---- Complex layers ----


@case(sequence, first=made(nn.Linear, D // 2, 8, dtype=torch.cfloat), second=made(nn.Linear, 8, CLASSES, dtype=torch.cfloat),
      shift=parameter(8))
def complex_layers(m, x):
    z = m.first(torch.complex(*x.mean(1).chunk(2, -1)))
    z = F.relu(z.abs() + m.shift) * torch.exp(1j * z.angle())  # modReLU (Arjovsky et al. 2016)
    z = m.second(torch.tanh(z) + 0.1j)
    return z.abs() + (z * z.conj()).real - z.conj().imag


@case(sequence, conv=made(nn.Conv1d, D, 4, 3, dtype=torch.cfloat), norm=made(nn.BatchNorm1d, 4), head=linear(4))
def complex_convolution(m, x):
    z = m.conv(torch.fft.fft(x, dim=1).transpose(1, 2))
    return m.head(torch.view_as_real(m.norm(z.real) + 1j * m.norm(z.imag)).mean((2, 3)))


@case(sequence, a=complex_parameter(D, D), head=linear(D))
def unitary(m, x):
    u = torch.linalg.matrix_exp(m.a - m.a.mH)
    return m.head((x.to(u.dtype) @ u @ torch.linalg.inv(u + 2 * torch.eye(D))).abs().mean(1))


@case(sequence, decay=parameter(D, 4), turn=parameter(D, 4), c=complex_parameter(D, 4), head=linear(D))
def state_space(m, x):
    """S4D (Gu et al. 2022): a kernel of exponentials, convolved by transforms."""
    a = -torch.exp(m.decay) + 1j * m.turn
    kernel = 2 * torch.einsum("dn,dnt->dt", m.c / a, torch.exp(a[..., None] * torch.arange(T))).real
    y = torch.fft.irfft(torch.fft.rfft(x.transpose(1, 2), n=2 * T) * torch.fft.rfft(kernel, n=2 * T), n=2 * T)[..., :T]
    return m.head(F.gelu(y).mean(-1))


# ---- Rotations ----


def turns(dim, length, dtype):
    angles = torch.outer(torch.arange(length), 100 ** -(torch.arange(0, dim, 2) / dim)).to(dtype)
    return torch.polar(torch.ones_like(angles), angles)


def attended(m, x, turned):
    q, k, v = m.q(x).unflatten(2, (2, 4)), m.k(x).unflatten(2, (2, 4)), m.v(x).unflatten(2, (2, 4))
    rotate = lambda t: torch.view_as_real(torch.view_as_complex(t.unflatten(-1, (2, 2))) * turned[:, None]).flatten(3)
    y = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (rotate(q), rotate(k), v)), is_causal=True)
    return m.head(y.transpose(1, 2).flatten(2).mean(1))


ROTARY = {"words": made(nn.Embedding, 50, 8), "q": linear(8, 8), "k": linear(8, 8), "v": linear(8, 8), "head": linear(8)}


@case(tokens, table=lambda: turns(4, 2 * T, torch.double).to(torch.cfloat), **ROTARY)
def rotary(m, ids):
    """Llama's (Touvron et al. 2023), with its table of rotations."""
    return attended(m, m.words(ids), m.table[:T])


@case(tokens, **ROTARY)
def rotary_computed(m, ids):
    x = m.words(ids)
    return attended(m, x, turns(4, T, x.dtype))


# ---- Weights ----


@case(sequence, fixed=complex_parameter(D, D, trained=False), table=lambda: torch.randn(D, dtype=torch.cfloat),
      w=complex_parameter(D), head=linear(D))
def frozen_beside_trained(m, x):
    return m.head(((x.to(m.w.dtype) @ m.fixed) * m.table + m.w).abs().mean(1))


@case(sequence, mean=lambda: torch.zeros(D, dtype=torch.cfloat), w=complex_parameter(D), head=linear(D))
def written_buffer(m, x):
    z = torch.fft.fft(x, dim=1).mean(1) * m.w
    if m.training:
        with torch.no_grad():
            m.mean.mul_(0.9).add_(0.01 * z.sum(0))
    return m.head(z.abs())


@case(sequence, w=complex_parameter(), real=parameter(D), head=linear(D))
def scalars(m, x):
    z = (x * m.w + m.real) / (2 - 1j) - 3
    return m.head(torch.where(z.real > -1, z, -z).sum(1).abs())


# ---- What cannot be trained ----


def samples_are_real(m, z):
    return m.head(z.abs().mean(1))


def losses_are_real(m, x):
    return torch.fft.fft(m.head(x.mean(1)))


REFUSED = {"samples_are_real": (Idiom(samples_are_real, lambda n: (torch.randn(n, T, D, dtype=torch.cfloat),),
                                      lambda: {"head": linear(D)()}), "found input 'x' of complex numbers"),
           "losses_are_real": (Idiom(losses_are_real, sequence, lambda: {"head": linear(D)()}), "wanted real numbers")}
