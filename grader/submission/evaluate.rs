//! The value of an expression.

use std::sync::Arc;

use super::interpreter::{Interpreter, NESTING};
use super::lexer::Token;
use super::parser::{Names, Parser, Text};
use super::program::Program;
use super::sites::callee_name;
use super::tree::{Expression, ExpressionKind, Name, Operator, TemplateArgument};
use super::types::{Base, SIZE, Type};
use super::value::{Data, Value, binary, literal, real, sum_origin};

/// The value of an integer expression without names, as `#if` has them.
pub fn constant(tokens: &[Token]) -> Option<i128> {
    let text = Text::new(tokens.to_vec());
    let names = Names::default();
    let mut parser = Parser::new(&text, &names, 0, text.tokens.len());
    let expression = parser.expression().filter(|_| parser.at == parser.end)?;
    let program = Program::default();
    Interpreter::new(&program).evaluate(&expression).as_integer()
}

impl Interpreter<'_> {
    /// The value of an expression; side effects on known variables happen.
    pub fn evaluate(&mut self, expression: &Expression) -> Value {
        if self.fuel == 0 || self.nesting >= NESTING {
            return self.unknown(expression, "takes too long to work out");
        }
        self.fuel -= 1;
        self.nesting += 1;
        let value = self.evaluate_kind(expression);
        self.nesting -= 1;
        value
    }

    fn evaluate_kind(&mut self, expression: &Expression) -> Value {
        match &expression.kind {
            ExpressionKind::Number(text) => literal(text).unwrap_or_else(|| self.unknown(expression, "is no number")),
            ExpressionKind::Character(text) => {
                let byte = text.bytes().rev().nth(1).unwrap_or_default();
                Value::int(i128::from(byte))
            }
            ExpressionKind::Name(name) => self.read(name, expression),
            ExpressionKind::Unary(sign, inner) => self.unary(*sign, inner, expression),
            ExpressionKind::Step { by, before, place } => self.step(*by, *before, place, expression),
            ExpressionKind::Binary(operator, left, right) => self.binary(*operator, left, right, expression),
            ExpressionKind::Assign(operator, left, right) => self.assign(*operator, left, right, expression),
            ExpressionKind::Conditional(condition, then, otherwise) => self.conditional(condition, then, otherwise),
            ExpressionKind::Comma(items) => {
                let values: Vec<Value> = items.iter().map(|item| self.evaluate(item)).collect();
                values.into_iter().next_back().unwrap_or_else(|| self.unknown(expression, "has no value"))
            }
            ExpressionKind::Cast(kind, inner) => {
                let value = self.evaluate(inner);
                let kind = self.resolved(kind);
                self.coerced(value, &kind)
            }
            ExpressionKind::Construct(kind, items) => self.construct_expression(kind, items),
            ExpressionKind::Braces(items) => {
                let items = items.iter().take(4096);
                Data::List(items.map(|(name, item)| (name.clone(), self.evaluate(item))).collect()).into()
            }
            ExpressionKind::Call(callee, arguments) => self.call(callee, arguments, expression),
            ExpressionKind::Index(array, index) => self.index(array, index, expression),
            ExpressionKind::Member(object, member) => self.member(object, &member.path, expression),
            ExpressionKind::SizeOfType(kind) => {
                let size = self.size_of(kind, 0);
                size.map_or_else(|| self.unknown(expression, "is the size of an unknown type"), sized)
            }
            ExpressionKind::SizeOf(inner) => self.size_of_value(inner, expression),
            ExpressionKind::Lambda(lambda) => Data::Lambda(lambda.clone(), self.captured(lambda).into()).into(),
            ExpressionKind::Known(value) => (**value).clone(),
            ExpressionKind::Launch(_) | ExpressionKind::Text | ExpressionKind::Opaque => {
                self.unknown(expression, "has no value that the text gives")
            }
        }
    }

    fn construct_expression(&mut self, kind: &Type, items: &[Expression]) -> Value {
        let kind = self.resolved(kind);
        if let [Expression { kind: ExpressionKind::Braces(items), .. }] = items {
            return self.constructed(&kind, items);
        }
        let values: Vec<Value> = items.iter().take(4096).map(|item| self.evaluate(item)).collect();
        match (&kind.base, values.len()) {
            (Base::Named(_), _) => {
                let list = values.into_iter().map(|value| (None, value)).collect();
                self.coerced(Data::List(list).into(), &kind)
            }
            (_, 0) => Value::int(0).converted(&kind),
            _ => values.into_iter().next().map_or_else(|| Value::int(0), |value| value.converted(&kind)),
        }
    }

    fn unary(&mut self, sign: char, inner: &Expression, expression: &Expression) -> Value {
        let value = self.evaluate(inner);
        if matches!(sign, '*' | '&' | '+') || value.as_unknown().is_some() {
            return value;
        }
        let zero = Value::int(0);
        let result = match sign {
            '-' => match value.data {
                Data::Float { value, single } => Some(real(-value, single)),
                _ => binary(Operator::Subtract, &zero, &value),
            },
            '!' => value.truth().map(|holds| Value::boolean(!holds)),
            '~' => binary(Operator::BitXor, &value, &Value::int(-1)),
            _ => None,
        };
        result.unwrap_or_else(|| self.unknown(expression, "has no value that the text gives"))
    }

    fn binary(&mut self, operator: Operator, left: &Expression, right: &Expression, whole: &Expression) -> Value {
        let left = self.evaluate(left);
        match (operator, left.truth()) {
            (Operator::And, Some(false)) => return Value::boolean(false),
            (Operator::Or, Some(true)) => return Value::boolean(true),
            _ => {}
        }
        let right = self.evaluate(right);
        self.combined(operator, &left, &right, whole)
    }

    fn combined(&mut self, operator: Operator, left: &Value, right: &Value, whole: &Expression) -> Value {
        if let Some(unknown) = left.as_unknown().or(right.as_unknown()) {
            return Data::Unknown(unknown.clone()).into();
        }
        let by_zero = matches!(operator, Operator::Divide | Operator::Remainder) && right.as_integer() == Some(0);
        let why = if by_zero { "divides by zero" } else { "has no value that the text gives" };
        match binary(operator, left, right) {
            Some(value) => Value { origin: sum_origin(operator, left, right, &value), ..value },
            None => self.unknown(whole, why),
        }
    }

    fn conditional(&mut self, condition: &Expression, then: &Expression, otherwise: &Expression) -> Value {
        let condition = self.evaluate(condition);
        match condition.truth() {
            Some(true) => self.evaluate(then),
            Some(false) => self.evaluate(otherwise),
            None => {
                let (then, otherwise) = (self.evaluate(then), self.evaluate(otherwise));
                let same = then.as_integer().is_some() && then.as_integer() == otherwise.as_integer();
                if same { then } else { Value { data: condition.data, origin: Vec::new() } }
            }
        }
    }

    fn step(&mut self, by: i8, before: bool, place: &Expression, whole: &Expression) -> Value {
        let old = self.evaluate(place);
        let new = self.combined(Operator::Add, &old, &Value::int(i128::from(by)), whole);
        self.store(place, new.clone());
        if before { new } else { old }
    }

    fn assign(
        &mut self,
        operator: Option<Operator>,
        left: &Expression,
        right: &Expression,
        whole: &Expression,
    ) -> Value {
        let right = self.evaluate(right);
        let value = match operator {
            None => right,
            Some(operator) => {
                let left = self.evaluate(left);
                self.combined(operator, &left, &right, whole)
            }
        };
        self.store(left, value.clone());
        value
    }

    /// Assigns, converting to the type of the place.
    pub fn store(&mut self, place: &Expression, value: Value) {
        if let ExpressionKind::Call(callee, places) = &place.kind {
            return self.store_tied(callee, places, value);
        }
        let value = match self.kind_of_place(place) {
            Some(kind) => self.coerced(value, &kind),
            None => value,
        };
        let Some(slot) = self.place(place) else { return };
        let value = match &slot.data {
            Data::Integer { bits, signed, .. } => {
                value.converted(&Type::of(Base::Integer { bits: *bits, signed: *signed, spelling: "" }))
            }
            Data::Object { name, .. } if &**name == "dim3" => super::objects::to_dim3(value),
            _ => value,
        };
        *slot = value;
    }

    /// `std::tie(a, b) = value`
    fn store_tied(&mut self, callee: &Expression, places: &[Expression], value: Value) {
        if callee_name(callee) != Some("tie") || self.fuel == 0 {
            return;
        }
        for (index, place) in places.iter().enumerate() {
            let part = self.part(&value, index).unwrap_or_else(|| self.unknown(place, "is not known from the text"));
            self.store(place, part);
        }
    }

    /// One of the values that an object or list is made of, in order.
    pub fn part(&mut self, whole: &Value, index: usize) -> Option<Value> {
        match &whole.data {
            Data::Object { members, .. } => {
                let name = members.get(index)?.0.clone();
                self.member_value(whole, &name)
            }
            Data::List(items) => items.get(index).map(|item| item.1.clone()),
            _ => None,
        }
    }

    fn index(&mut self, array: &Expression, index: &Expression, whole: &Expression) -> Value {
        let array = self.evaluate(array);
        let index = self.evaluate(index);
        if let Some(unknown) = array.as_unknown().or(index.as_unknown()) {
            return Data::Unknown(unknown.clone()).into();
        }
        let place = index.as_integer().and_then(|index| usize::try_from(index).ok());
        match (&array.data, place) {
            (Data::List(items), Some(place)) => items.get(place).map(|item| item.1.clone()),
            _ => None,
        }
        .unwrap_or_else(|| self.unknown(whole, "has no value that the text gives"))
    }

    fn member(&mut self, object: &Expression, member: &Arc<str>, whole: &Expression) -> Value {
        let is_this = matches!(&object.kind, ExpressionKind::Name(name) if &*name.path == "this");
        let object = match self.frames.last().and_then(|frame| frame.this.clone()).filter(|_| is_this) {
            Some(this) => this,
            None => self.evaluate(object),
        };
        if let Data::Unknown(unknown) = &object.data {
            return match unknown.why {
                "has no value yet" | "is not declared in heat.cu" => self.unknown(whole, "is not known from the text"),
                _ => Data::Unknown(unknown.clone()).into(),
            };
        }
        self.member_value(&object, member).unwrap_or_else(|| self.unknown(whole, "is not known from the text"))
    }

    /// Bytes of a type.
    fn size_of(&mut self, kind: &Type, depth: u32) -> Option<i128> {
        let kind = self.resolved(kind);
        if !kind.pointers.is_empty() {
            return Some(8);
        }
        match &kind.base {
            Base::Bool => Some(1),
            Base::Integer { bits, .. } => Some(i128::from(bits / 8)),
            Base::Float => Some(4),
            Base::Double => Some(8),
            Base::Void | Base::Auto => None,
            Base::Named(name) => match &**name {
                "float2" | "int2" | "uint2" => Some(8),
                "float3" | "int3" | "uint3" | "dim3" => Some(12),
                "float4" | "int4" | "uint4" => Some(16),
                "half" | "__half" | "__nv_bfloat16" => Some(2),
                _ => self.size_of_struct(name, depth),
            },
        }
    }

    fn size_of_struct(&mut self, name: &str, depth: u32) -> Option<i128> {
        if depth > 8 || self.fuel == 0 {
            return None;
        }
        self.spend(1);
        let program = self.program;
        let members = &program.structs.get(name.rsplit("::").next()?)?.members;
        let (mut size, mut alignment) = (0i128, 1i128);
        for member in members.iter().take(64) {
            let each = self.size_of(&member.kind, depth + 1)?;
            let mut count = 1i128;
            for length in &member.dimensions {
                count = count.checked_mul(self.evaluate(length.as_ref()?).as_integer()?)?;
            }
            let align = each.clamp(1, 8);
            alignment = alignment.max(align);
            size = rounded_up(size, align).checked_add(each.checked_mul(count)?)?;
        }
        Some(rounded_up(size, alignment))
    }

    fn size_of_value(&mut self, inner: &Expression, whole: &Expression) -> Value {
        let kind = self.kind_of_place(inner);
        let value = self.evaluate(inner);
        let each = match (&value.data, kind) {
            (Data::List(items), Some(kind)) => self.size_of(&kind, 0).map(|each| each * items.len() as i128),
            (Data::Integer { bits, .. }, _) => Some(i128::from((bits / 8).max(1))),
            (Data::Float { single, .. }, _) => Some(if *single { 4 } else { 8 }),
            (_, Some(kind)) => self.size_of(&kind, 0),
            _ => None,
        };
        each.map_or_else(|| self.unknown(whole, "is the size of an unknown type"), sized)
    }

    /// The kernel or function that a name means, its template arguments worked out.
    pub fn function_value(&mut self, name: &Name) -> Option<Value> {
        let program = self.program;
        let mut named = program.functions_named(&name.path).filter(|(_, function)| !function.specialisation);
        let first = named.next()?;
        // Of a declaration and a definition, the one with the body.
        let (index, _) = std::iter::once(first).chain(named).find(|(_, f)| f.body.is_some()).unwrap_or(first);
        let arguments = name.arguments.as_ref().map(|list| list.iter().map(|a| self.template_argument(a)).collect());
        Some(Data::Function { index, arguments }.into())
    }

    /// A template argument as a call from the end of the file can spell it.
    pub fn template_argument(&mut self, argument: &TemplateArgument) -> String {
        let value = argument.value.as_ref().map(|value| self.evaluate(value));
        match value.map(|value| value.data) {
            Some(Data::Integer { value, bits: 1, .. }) => (value != 0).to_string(),
            Some(Data::Integer { value, .. }) => value.to_string(),
            _ => match argument.kind.as_ref().map(|kind| self.resolved(kind)) {
                Some(kind) => self.spelt_type(&kind),
                None => self.program.text.spelling(argument.at.clone()),
            },
        }
    }
}

fn sized(bytes: i128) -> Value {
    Value::integer(bytes, &SIZE)
}

fn rounded_up(size: i128, alignment: i128) -> i128 {
    size.div_euclid(alignment).saturating_add(i128::from(size.rem_euclid(alignment) != 0)).saturating_mul(alignment)
}
