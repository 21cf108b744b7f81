package cond

// Limits of a condition.
const (
	maxLength = 64 << 10
	maxDepth  = 100
)

// Parse reads a condition. An empty one is all_success. An error is an *Error.
func Parse(text string) (*Expr, error) {
	if len(text) > maxLength {
		return nil, fault(maxLength, "the condition has %d bytes, at most %d are allowed", len(text), maxLength)
	}
	p := &parser{expr: &Expr{text: text, macro: AllSuccess}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.token.kind == end {
		p.expr.root = &node{op: macroOp, macro: AllSuccess, text: string(AllSuccess)}
		return p.expr, nil
	}
	root, err := p.truth(p.or)
	if err != nil {
		return nil, err
	}
	if p.token.kind != end {
		return nil, p.unexpected()
	}
	p.expr.root = root
	return p.expr, nil
}

// parser reads a condition by recursive descent: or, and, comparison, not, operand.
type parser struct {
	expr  *Expr
	token token // the one in front
	after int   // where the text goes on behind it
	depth int
}

func (p *parser) advance() error {
	t, err := next(p.expr.text, p.after)
	if err != nil {
		return err
	}
	p.token, p.after = t, t.at+len(t.text)
	return nil
}

// truth reads a part that must be true or false, not something to compare.
func (p *parser) truth(read func() (*node, error)) (*node, error) {
	n, err := read()
	if err == nil && n.isOperand() {
		return nil, fault(n.at, "%s is not compared with anything: write %s == 'value'", excerpt(n.text), n.text)
	}
	return n, err
}

func (p *parser) or() (*node, error)  { return p.chain("||", p.and) }
func (p *parser) and() (*node, error) { return p.chain("&&", p.comparison) }

// chain reads parts joined by an operator.
func (p *parser) chain(op kind, part func() (*node, error)) (*node, error) {
	left, err := part()
	for err == nil && p.token.kind == op {
		if left.isOperand() {
			return p.truth(func() (*node, error) { return left, nil })
		}
		if err = p.advance(); err != nil {
			break
		}
		var right *node
		if right, err = p.truth(part); err == nil {
			left = &node{op: op, left: left, right: right, at: left.at}
		}
	}
	return left, err
}

func (p *parser) comparison() (*node, error) {
	left, err := p.not()
	if err != nil || !isComparison(p.token.kind) {
		return left, err
	}
	op := p.token
	if err := p.advance(); err != nil {
		return nil, err
	}
	right, err := p.not()
	if err != nil {
		return nil, err
	}
	for _, side := range []*node{left, right} {
		if !side.isOperand() {
			return nil, fault(side.at, "%s compares ${job:param}, numbers and texts only, and what stands on one side of it is true or false",
				op.text)
		}
	}
	if isComparison(p.token.kind) {
		return nil, fault(p.token.at, "a comparison is compared again by %s: join two comparisons by &&", p.token.text)
	}
	return &node{op: op.kind, left: left, right: right, at: left.at}, nil
}

func (p *parser) not() (*node, error) {
	if p.token.kind != "!" {
		return p.operand()
	}
	at := p.token.at
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.not()
	if err != nil {
		return nil, err
	}
	if n.isOperand() {
		return nil, fault(at, "! stands before %s, which is neither true nor false: put the comparison in parentheses, !(%s == 'value')",
			excerpt(n.text), n.text)
	}
	return &node{op: "!", left: n, at: at}, nil
}

func (p *parser) operand() (*node, error) {
	t := p.token
	switch t.kind {
	case "(":
		return p.parentheses()
	case variable, number, quoted:
		n := &node{op: t.kind, text: t.text, at: t.at, job: t.job, param: t.param, value: t.value}
		if t.kind == variable {
			p.expr.variables = append(p.expr.variables, n)
		}
		return n, p.advance()
	case word:
		macro := macroOf(t.text)
		if macro == "" {
			return nil, notExpression(p.expr.text[t.at:], t.at)
		}
		if p.expr.explicit {
			return nil, fault(t.at, "more than one macro: %s and %s, a condition may have one", p.expr.macro, macro)
		}
		p.expr.macro, p.expr.explicit = macro, true
		return &node{op: macroOp, macro: macro, text: t.text, at: t.at}, p.advance()
	default:
		return nil, p.emptyOperand()
	}
}

func (p *parser) parentheses() (*node, error) {
	opening := p.token.at
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.token.kind == end {
		return nil, fault(opening, "the parenthesis is not closed")
	}
	if p.token.kind != ")" {
		return nil, p.unexpected()
	}
	return n, p.advance()
}

// enter and leave bound how deeply parentheses and negations may be nested.
func (p *parser) enter() error {
	if p.depth++; p.depth > maxDepth {
		return fault(p.token.at, "nested more than %d deep", maxDepth)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

func (p *parser) emptyOperand() error {
	if p.token.kind == end {
		return fault(p.token.at, "empty operand: the condition ends where a macro or a comparison should stand")
	}
	return fault(p.token.at, "empty operand: %s stands where a macro or a comparison should", p.token.text)
}

// unexpected says that a token cannot stand where it does.
func (p *parser) unexpected() error {
	if p.token.kind == ")" {
		return fault(p.token.at, "a parenthesis is closed that was not opened")
	}
	return fault(p.token.at, "%s is not joined to what stands before it: && or || is missing", excerpt(p.token.text))
}

func isComparison(k kind) bool {
	switch k {
	case "==", "!=", ">", ">=", "<", "<=":
		return true
	default:
		return false
	}
}
