package decide

// minHeap is a heap of numbers, the least first.
type minHeap []int

func (h *minHeap) push(n int) {
	s := append(*h, n)
	for i := len(s) - 1; i > 0; {
		above := (i - 1) / 2
		if s[above] <= s[i] {
			break
		}
		s[above], s[i] = s[i], s[above]
		i = above
	}
	*h = s
}

func (h *minHeap) pop() int {
	s := *h
	least, last := s[0], len(s)-1
	s[0] = s[last]
	s = s[:last]
	for i := 0; ; {
		below := 2*i + 1
		if below >= last {
			break
		}
		if below+1 < last && s[below+1] < s[below] {
			below++
		}
		if s[i] <= s[below] {
			break
		}
		s[i], s[below] = s[below], s[i]
		i = below
	}
	*h = s
	return least
}
