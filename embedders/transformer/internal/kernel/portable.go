package kernel

import "math"

// geluGo computes erf in float64: it is the measure for the other forms.
func geluGo(x []float32) {
	for i, v := range x {
		x[i] = float32(float64(v) * 0.5 * (1 + math.Erf(float64(v)*(1/math.Sqrt2))))
	}
}

func softmaxGo(x []float32, scale float32) {
	if len(x) == 0 {
		return
	}
	most := x[0]
	for _, v := range x {
		most = max(most, v)
	}
	sum := float32(0)
	for i, v := range x {
		x[i] = float32(math.Exp(float64((v - most) * scale)))
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}

func layerNormGo(x, residual, weight, bias []float32, eps float32) {
	mean, variance := float32(0), float32(0)
	for i, r := range residual {
		x[i] += r
		mean += x[i]
	}
	mean /= float32(len(x))
	for i := range x {
		x[i] -= mean
		variance += x[i] * x[i]
	}
	scale := 1 / float32(math.Sqrt(float64(variance/float32(len(x))+eps)))
	for i := range x {
		x[i] = x[i]*scale*weight[i] + bias[i]
	}
}

// mostGo returns the largest absolute value.
func mostGo(x []float32) float32 {
	most := float32(0)
	for _, v := range x {
		most = max(most, float32(math.Abs(float64(v))))
	}
	return most
}

func wordsGo(out []int16, x []float32, scale float32) {
	for i, v := range x {
		out[i] = int16(math.RoundToEven(float64(v * scale)))
	}
}

func bytesGo(out []int8, x []float32, scale float32) int32 {
	sum := int32(0)
	for i, v := range x {
		out[i] = int8(math.RoundToEven(float64(v * scale)))
		sum += int32(out[i])
	}
	return sum
}
